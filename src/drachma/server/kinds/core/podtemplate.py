"""Templates of pods that stand by themselves."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.core import podspec, podtypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import warnings

_TYPES: Final = """\
PodTemplate: apiVersion=str kind=str metadata=ObjectMeta! template=PodTemplateSpec!
"""
_NUMBERS: Final = """\
PodTemplate: metadata template
"""
_TEXTS: Final = """\
PodTemplate: A template of pods that stands by itself.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)


class PodTemplateStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        template = content["template"] = dict(content.get("template") or {})
        spec = template["spec"] = dict(template.get("spec") or {})
        podspec.default(spec)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from workload.check_template(content["template"], Path("template"))

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template, at = content["template"], Path("template")
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        notes = at.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at.child("spec"), annotations=annotations, notes=notes)


def _cells(template: Document, now: datetime) -> layout.Cells:
    inner = cells.part(template, "template")
    names = cells.template({"spec": {"template": inner}}, absent="")[:2]
    own = cells.part(inner, "metadata").get("labels") or {}
    return [cells.name(template), *names, ",".join(f"{key}={value}" for key, value in sorted(own.items())) or "<none>"]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="podtemplates",
    kind="PodTemplate",
    namespaced=True,
    schemas={"v1": _PACKAGE.object("PodTemplate")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Containers", "The names of the containers in the template."),
            layout.text("Images", "The images of the containers in the template."),
            layout.text("Pod Labels", "The labels that pods get."),
        ),
        _cells,
    ),
    strategy=PodTemplateStrategy,
)
