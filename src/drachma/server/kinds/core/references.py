"""How objects of all groups refer to other objects, to nodes and to fields of pods.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.api import nodeselector
from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
LocalObjectReference!: name=str/
NodeSelector!: nodeSelectorTerms=[NodeSelectorTerm]!*
NodeSelectorRequirement: key=str* operator=str@NodeSelectorOperator* values=[str]
NodeSelectorTerm!: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
ObjectFieldSelector!: apiVersion=str fieldPath=str*
ObjectReference!: apiVersion=str fieldPath=str kind=str name=str namespace=str resourceVersion=str uid=str
ResourceFieldSelector!: containerName=str divisor=Quantity! resource=str*
TypedLocalObjectReference!: apiGroup=str!? kind=str* name=str*
TypedObjectReference: apiGroup=str!? kind=str* name=str* namespace=str?
"""
_NUMBERS: Final = """\
LocalObjectReference: name
NodeSelector: nodeSelectorTerms
NodeSelectorRequirement: key operator values
NodeSelectorTerm: matchExpressions matchFields
ObjectFieldSelector: apiVersion fieldPath
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
ResourceFieldSelector: containerName resource divisor
TypedLocalObjectReference: apiGroup? kind name
TypedObjectReference: apiGroup? kind name namespace?
"""
_TEXTS: Final = """\
ObjectReference: Which object is meant.
"""

REFERENCES: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(nodeselector,),
    uses=(metatypes.META,),
)
