"""The strategy of what runs pods from a template: jobs, deployments and replica sets."""

from collections.abc import Iterable, Mapping
from typing import Any

from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document
from drachma.server.kinds.templated import TemplatedStrategy
from drachma.server.surface.strategy import Subject
from drachma.validation import workload
from drachma.validation.fielderror import Errors
from drachma.validation.podspec import warnings


class WorkloadStrategy(TemplatedStrategy):
    """What runs pods from a template."""

    counts_generations = True

    def default_spec(self, spec: Document) -> None:
        podspec.default(spec.setdefault("template", {}).setdefault("spec", {}))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_selector_update(content["spec"], old["spec"])

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = workload.TEMPLATE.child("spec"), workload.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)
