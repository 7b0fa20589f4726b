"""Limit ranges: what a container, a pod or a volume claim of a namespace may ask for, and gets if it does not say."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import limitrange as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
LimitRange: apiVersion=str kind=str metadata=ObjectMeta! spec=LimitRangeSpec!
LimitRangeSpec: limits=[LimitRangeItem]*
LimitRangeItem: default=<Quantity> defaultRequest=<Quantity> max=<Quantity> maxLimitRequestRatio=<Quantity>
    min=<Quantity> type=str*
"""
_NUMBERS: Final = """\
LimitRange: metadata spec
LimitRangeSpec: limits
LimitRangeItem: type max min default defaultRequest maxLimitRequestRatio
"""
_TEXTS: Final = """\
LimitRange: What a container, a pod or a volume claim of a namespace may ask for, and gets if it does not say.
LimitRangeSpec: The limits of a namespace.
LimitRangeSpec.limits: What may be asked for, at most one for each type.
LimitRangeItem: What one object of a type may ask for.
LimitRangeItem.type: Container, Pod or PersistentVolumeClaim.
LimitRangeItem.max: The most of each resource that may be asked for.
LimitRangeItem.min: The least of each resource that must be asked for.
LimitRangeItem.default: The limits of containers that state none.
LimitRangeItem.defaultRequest: The requests of containers that state none.
LimitRangeItem.maxLimitRequestRatio: How many times the request a limit may be.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))


class LimitRangeStrategy(DocumentStrategy):
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content.get("spec") or {}
        if spec.get("limits"):
            content["spec"] = {**spec, "limits": list(map(_completed, spec["limits"]))}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        # One without a name gets one that nobody else has.
        if not metadata.get("name"):
            metadata["name"] = metadata["uid"]

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {})


def _completed(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of containers: the limit is the most, the request the limit or else the least, where nothing is said."""
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    defaults = {"default": limits, "defaultRequest": requests}
    return {**item, **{field: dict(sorted(amounts.items())) for field, amounts in defaults.items() if amounts}}


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="limitranges",
    kind="LimitRange",
    namespaced=True,
    short_names=("limits",),
    schemas={"v1": _PACKAGE.object("LimitRange")},
    traits=resources.Traits(creates_on_update=True),
    layout=layout.CREATED,
    strategy=LimitRangeStrategy,
)
