"""AdmissionCheck: somebody else's say in admissions."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct


class AdmissionCheckSpec(Struct, frozen=True, kw_only=True):
    """Who looks after the check."""

    controller_name: str = ABSENT_TEXT


class AdmissionCheckStatus(Struct, frozen=True, kw_only=True):
    """Whether anybody does."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class AdmissionCheck(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` AdmissionCheck; a partial view."""

    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()
