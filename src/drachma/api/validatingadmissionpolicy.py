"""ValidatingAdmissionPolicy: what objects must be like to be admitted. A partial view: how far its status has come."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, Int64, Struct


class ValidatingAdmissionPolicyStatus(Struct, frozen=True, kw_only=True):
    """Which generation of the policy was looked at."""

    observed_generation: Int64 = ABSENT_INT


class ValidatingAdmissionPolicy(meta.Object, frozen=True, kw_only=True):
    """``admissionregistration.k8s.io`` ValidatingAdmissionPolicy, of cluster scope; a partial view."""

    status: ValidatingAdmissionPolicyStatus = ValidatingAdmissionPolicyStatus()
