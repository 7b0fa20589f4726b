"""Evictions: the body of ``pods/eviction``, the wish to have a pod go."""

from typing import Final

from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs

_TYPES: Final = """\
Eviction: apiVersion=str deleteOptions=DeleteOptions kind=str metadata=ObjectMeta!
"""
_NUMBERS: Final = """\
Eviction: metadata deleteOptions
"""
_TEXTS: Final = """\
Eviction: The wish to have a pod go.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.policy.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))

SUBRESOURCE: Final = resources.Subresource(
    name="eviction",
    verbs=(verbs.CREATE,),
    kind="Eviction",
    api_version="policy/v1",
    schema=_PACKAGE.object("Eviction"),
)
