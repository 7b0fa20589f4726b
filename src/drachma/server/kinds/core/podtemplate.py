"""Pod templates as objects of their own."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import documents, objectmeta
from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import apps as rules
from drachma.validation.path import Path
from drachma.validation.podspec import warnings


class PodTemplateStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        template = content["template"] = dict(content.get("template") or {})
        spec = template["spec"] = dict(template.get("spec") or {})
        podspec.default(spec)

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return not documents.same(content.get("template"), old.get("template"))

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
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Containers", "The names of the containers in the template."),
            layout.text("Images", "The images of the containers in the template."),
            layout.text("Pod Labels", "The labels that pods get."),
        ),
        _cells,
    ),
    rules=rules.KINDS["PodTemplate"],
    strategy=PodTemplateStrategy,
)
