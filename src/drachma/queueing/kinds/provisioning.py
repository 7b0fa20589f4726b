"""ProvisioningRequestConfig: the requests for nodes that an admission check makes."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct


class NodeSelectorUpdate(Struct, frozen=True, kw_only=True):
    """Node selector of pods whose value is a detail of the request's class."""

    key: str = ABSENT_TEXT
    value_from_provisioning_class_detail: str = ABSENT_TEXT


class PodSetUpdates(Struct, frozen=True, kw_only=True):
    """Changes of pods that lead them to the provisioned nodes."""

    node_selector: tuple[NodeSelectorUpdate, ...] = ABSENT_TUPLE


class RetryStrategy(Struct, frozen=True, kw_only=True):
    """Retries of failed requests; waits double from the base to the maximum."""

    backoff_limit_count: Int32 = 3
    backoff_base_seconds: Int32 = 60
    backoff_max_seconds: Int32 = 1800


class ProvisioningRequestConfigSpec(Struct, frozen=True, kw_only=True):
    """Class, parameters and retries of the requests."""

    provisioning_class_name: str = ABSENT_TEXT
    parameters: Mapping[str, str] = ABSENT_MAP
    managed_resources: tuple[str, ...] = ABSENT_TUPLE
    retry_strategy: RetryStrategy = RetryStrategy()
    pod_set_updates: PodSetUpdates | None = None
    pod_set_merge_policy: str | None = None


class ProvisioningRequestConfig(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` ProvisioningRequestConfig."""

    spec: ProvisioningRequestConfigSpec = ProvisioningRequestConfigSpec()
