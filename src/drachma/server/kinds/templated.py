"""The strategy of pods and of what makes them: their specs come from templates, so that many are written alike.

What follows from a spec alone is derived from a part (:mod:`drachma.server.parts`), and stored specs that are alike are
one document.
"""

from drachma import errors
from drachma.server.kinds.document import Document, DocumentStrategy, check_types
from drachma.server.schema import emptyfields, model, normalform
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Write


class TemplatedStrategy(DocumentStrategy):
    """A kind that always has a spec."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._interner = environment.interner

    def default_spec(self, spec: Document) -> None:
        """Fills in the defaults of a spec, in place."""

    def settled(self, fields: Document, write: Write) -> Document:
        spec = fields.get("spec")
        if not isinstance(spec, dict | None):
            return super().settled(fields, write)
        rest = dict(fields)
        rest.pop("spec", None)
        try:
            own = self.settled_spec(spec or {}, self.resource.schema(write.version))
            settled = super().settled(rest, write)
        except errors.DecodeError:
            # Of several problems, the first in the document counts.
            return super().settled(fields, write)
        settled["spec"] = own
        if "spec" not in fields:
            return settled
        return {field: settled[field] for field in fields if field in settled}

    def settled_spec(self, spec: Document, schema: model.Object) -> Document:
        """A spec in normal form and with defaults; raises as ``read`` does."""
        settled: Document = self._interner.part(spec).changed(self._settled_spec, schema).value
        return settled

    def _settled_spec(self, spec: Document, schema: model.Object) -> Document:
        check_types({"spec": spec}, schema)
        whole = normalform.settled({"spec": spec}, schema)
        self.default_spec(whole["spec"])
        emptyfields.fill(whole, schema)
        settled: Document = whole["spec"]
        return settled
