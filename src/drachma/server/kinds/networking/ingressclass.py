"""Who sees to ingresses, as objects."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import ingressclass as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
IngressClass: apiVersion=str kind=str metadata=ObjectMeta! spec=IngressClassSpec!
IngressClassParametersReference: apiGroup=str? kind=str* name=str* namespace=str? scope=str?
IngressClassSpec: controller=str parameters=IngressClassParametersReference
"""
_NUMBERS: Final = """\
IngressClass: metadata spec
IngressClassParametersReference: apiGroup? kind name scope? namespace?
IngressClassSpec: controller parameters
"""
_TEXTS: Final = """\
IngressClass: Who sees to ingresses.
IngressClassSpec.controller: The controller that sees to them.
IngressClassSpec.parameters: An object with more about how it does.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.networking.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


class IngressClassStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if spec.get("parameters") is not None:
            spec["parameters"] = {"scope": "Cluster", **spec["parameters"]}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content["spec"], old.get("spec") or {})


def _cells(each: Document, now: datetime) -> layout.Cells:
    spec = cells.part(each, "spec")
    notes = cells.part(cells.part(each, "metadata"), "annotations")
    parameters = spec.get("parameters")
    shown = "<none>"
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [
        f"{cells.name(each)}{' (default)' if notes.get(_DEFAULT) == 'true' else ''}",
        spec.get("controller", ""),
        shown,
        cells.since_creation(each, now),
    ]


KIND: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ingressclasses",
    kind="IngressClass",
    namespaced=False,
    schemas={"v1": _PACKAGE.object("IngressClass")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Controller", "Who sees to ingresses of this class."),
            layout.text("Parameters", "An object with more about how it does."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=IngressClassStrategy,
)
