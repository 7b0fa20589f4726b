"""Kinds of ``policy``: pod disruption budgets, and the eviction subresource of pods."""

from datetime import datetime
from typing import Final

from drachma.api import types
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources, verbs
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import metadata, poddisruptionbudget
from drachma.validation.fielderror import FieldError

EVICTION: Final = resources.Subresource(
    name="eviction",
    verbs=(verbs.CREATE,),
    kind="Eviction",
    api_version="policy/v1",
    schema=types.get("policy/v1.Eviction"),
)


class PodDisruptionBudgetStrategy(DocumentStrategy):
    counts_generations = True
    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)
    qualifies_finalizers = False

    def check_create(self, content: Document, subject: Subject, metadata_errors: list[FieldError]) -> list[FieldError]:
        # Upstream's rules for budgets leave metadata to the rules for all kinds, which apply to valid objects.
        return [*self.check(content, subject), *self.check_new(content, subject)] or metadata_errors

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _budget_cells(budget: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(budget, "spec"), cells.part(budget, "status")
    shares = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [cells.name(budget), *shares, status.get("disruptionsAllowed", 0), cells.since_creation(budget, now)]


POD_DISRUPTION_BUDGET: Final = Kind(
    group="policy",
    versions=("v1",),
    plural="poddisruptionbudgets",
    kind="PodDisruptionBudget",
    namespaced=True,
    short_names=("pdb",),
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Min Available", "The minimum number of available pods."),
            layout.text("Max Unavailable", "The maximum number of unavailable pods."),
            layout.integer("Allowed Disruptions", "The number of pods that may be evicted now."),
            layout.AGE,
        ),
        _budget_cells,
    ),
    rules=poddisruptionbudget.KINDS["PodDisruptionBudget"],
    strategy=PodDisruptionBudgetStrategy,
)
