"""References to the objects that parameters are in, or were generated from."""

from drachma.api.struct import ABSENT_TEXT, ZERO_TEXT, Struct


class ResourceClaimParametersReference(Struct, frozen=True, kw_only=True):
    """Parameters of a claim, in the claim's namespace; the uid is known of what others were generated from."""

    api_group: str = ABSENT_TEXT
    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    uid: str = ABSENT_TEXT


class ResourceClassParametersReference(Struct, frozen=True, kw_only=True):
    """Parameters of a class; where they are of a namespaced kind, with their namespace."""

    api_group: str = ABSENT_TEXT
    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    namespace: str = ABSENT_TEXT
    uid: str = ABSENT_TEXT
