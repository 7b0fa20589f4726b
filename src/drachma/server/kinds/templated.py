"""Strategy of pods and of workloads with pod templates, whose specs are often equal.

Results that depend on a spec alone are derived once for equal specs (:mod:`drachma.server.parts`), and equal specs are
stored as one document.
"""

from collections.abc import Iterable

from drachma import errors
from drachma.api.types import model
from drachma.server.kinds.core import podspec
from drachma.server.kinds.document import Document, DocumentStrategy, check_types
from drachma.server.schema import emptyfields, normalform
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import workload
from drachma.validation.podspec import warnings


class TemplatedStrategy(DocumentStrategy):
    """Strategy of a kind that always has a spec."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._interner = environment.interner

    def default_spec(self, spec: Document) -> None:
        """Set the defaults of a spec, in place."""

    def normalize(self, fields: Document, write: Write) -> Document:
        spec = fields.get("spec")
        if not isinstance(spec, dict | None):
            return super().normalize(fields, write)
        other_fields = dict(fields)
        other_fields.pop("spec", None)
        try:
            normal_spec = self.normalize_spec(spec or {}, self.resource.schema(write.version))
            normal = super().normalize(other_fields, write)
        except errors.DecodeError:
            # Normalising the whole document reports the problem that comes first in it.
            return super().normalize(fields, write)
        normal["spec"] = normal_spec
        if "spec" not in fields:
            return normal
        return {field: normal[field] for field in fields if field in normal}

    def normalize_spec(self, spec: Document, schema: model.Object) -> Document:
        """Return a spec in normal form with defaults; raises as ``read`` does."""
        normal: Document = self._interner.part(spec).changed(self._normalize_spec, schema).value
        return normal

    def _normalize_spec(self, spec: Document, schema: model.Object) -> Document:
        check_types({"spec": spec}, schema)
        document = normalform.normalize({"spec": spec}, schema)
        self.default_spec(document["spec"])
        emptyfields.fill(document, schema)
        normal: Document = document["spec"]
        return normal


class WorkloadStrategy(TemplatedStrategy):
    """Strategy of workloads that run pods from a template."""

    counts_generations = True

    def default_spec(self, spec: Document) -> None:
        podspec.default(spec.setdefault("template", {}).setdefault("spec", {}))

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = workload.TEMPLATE.child("spec"), workload.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)
