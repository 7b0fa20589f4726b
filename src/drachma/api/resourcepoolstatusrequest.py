"""ResourcePoolStatusRequest: a question about pools of devices, and its answer. A partial view."""

from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE, ZERO_TEXT, Int32, Struct


class ResourcePoolStatusRequestSpec(Struct, frozen=True, kw_only=True):
    """Whose pools, which of them, and how many at most."""

    driver: str = ZERO_TEXT
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class ResourcePoolStatusRequestStatus(Struct, frozen=True, kw_only=True):
    """The answer, of which what is said about single pools is not looked at."""

    pool_count: Int32 | None = None
    pools: tuple[Any, ...] = ABSENT_TUPLE
    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class ResourcePoolStatusRequest(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` ResourcePoolStatusRequest, of the cluster; a partial view."""

    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus | None = None
