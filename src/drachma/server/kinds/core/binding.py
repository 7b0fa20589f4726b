"""Bindings: the body of ``pods/binding``, the decision to run a pod on a node."""

from typing import Final

from drachma.server.kinds.core import references
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs

_TYPES: Final = """\
Binding: apiVersion=str kind=str metadata=ObjectMeta! target=ObjectReference!*
"""
_NUMBERS: Final = """\
Binding: metadata target
"""
_TEXTS: Final = """\
Binding: The decision to run a pod on a node.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, references.REFERENCES)
)

SUBRESOURCE: Final = resources.Subresource(
    name="binding",
    verbs=(verbs.CREATE,),
    kind="Binding",
    api_version="v1",
    schema=_PACKAGE.object("Binding"),
)
