"""AdmissionCheck: a check by another controller that admissions must pass."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct

MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
"""Controller that dispatches workloads to other clusters."""
PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""Controller that has nodes created for workloads."""


class ParametersReference(Struct, frozen=True, kw_only=True):
    """Object of the cluster with parameters for the controller."""

    api_group: str = ABSENT_TEXT
    kind: str = ABSENT_TEXT
    name: str = ABSENT_TEXT


class AdmissionCheckSpec(Struct, frozen=True, kw_only=True):
    """Controller of the check, and its parameters."""

    controller_name: str = ABSENT_TEXT
    parameters: ParametersReference | None = None


class AdmissionCheckStatus(Struct, frozen=True, kw_only=True):
    """Conditions of the check."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class AdmissionCheck(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` AdmissionCheck; a partial view."""

    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()
