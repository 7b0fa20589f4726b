"""The strategy of what runs pods from a template: jobs, deployments and replica sets."""

from collections.abc import Iterable, Mapping
from typing import Any

from drachma.server import documents, objectmeta
from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import emptyfields
from drachma.server.surface.strategy import Subject
from drachma.validation import workload
from drachma.validation.fielderror import Errors
from drachma.validation.podspec import warnings


class WorkloadStrategy(DocumentStrategy):
    """What runs pods from a template."""

    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = documents.copy(content.get("spec", {}))
        template = spec.setdefault("template", {})
        podspec.default(template.setdefault("spec", {}))
        self.default_workload(spec, metadata)
        emptyfields.fill({"spec": spec}, self._schema)

    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        """The defaults of the workload itself, in place."""

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_selector_update(content["spec"], old["spec"])

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = workload.TEMPLATE.child("spec"), workload.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)
