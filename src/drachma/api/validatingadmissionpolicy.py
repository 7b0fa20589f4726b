"""ValidatingAdmissionPolicy: conditions for admission. A partial view of its status."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, Int64, Struct


class ValidatingAdmissionPolicyStatus(Struct, frozen=True, kw_only=True):
    """Observed generation of the policy."""

    observed_generation: Int64 = ABSENT_INT


class ValidatingAdmissionPolicy(meta.Object, frozen=True, kw_only=True):
    """``admissionregistration.k8s.io`` ValidatingAdmissionPolicy, cluster-scoped; a partial view."""

    status: ValidatingAdmissionPolicyStatus = ValidatingAdmissionPolicyStatus()
