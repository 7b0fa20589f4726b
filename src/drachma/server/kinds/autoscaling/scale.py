"""Scales: how many replicas a workload has and should have, apart from everything else."""

from typing import Final

from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs

_TYPES: Final = """\
Scale: apiVersion=str kind=str metadata=ObjectMeta! spec=ScaleSpec! status=ScaleStatus!
ScaleSpec: replicas=int32/0
ScaleStatus: replicas=int32* selector=str
"""
_NUMBERS: Final = """\
Scale: metadata spec status
ScaleSpec: replicas
ScaleStatus: replicas selector
"""
_TEXTS: Final = """\
Scale: How many pods a workload should have.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.autoscaling.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)

SUBRESOURCE: Final = resources.Subresource(
    name="scale",
    verbs=verbs.STATUS,
    kind="Scale",
    api_version="autoscaling/v1",
    schema=_PACKAGE.object("Scale"),
)
