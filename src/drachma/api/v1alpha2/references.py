"""References to parameter objects and to their sources."""

from drachma.api.struct import ABSENT_TEXT, ZERO_TEXT, Struct


class ResourceClaimParametersReference(Struct, frozen=True, kw_only=True):
    """Reference to parameters of a claim, in the claim's namespace; sources of generated objects have a uid."""

    api_group: str = ABSENT_TEXT
    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    uid: str = ABSENT_TEXT


class ResourceClassParametersReference(Struct, frozen=True, kw_only=True):
    """Reference to parameters of a class, with a namespace if their kind is namespaced."""

    api_group: str = ABSENT_TEXT
    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    namespace: str = ABSENT_TEXT
    uid: str = ABSENT_TEXT
