"""Disruption budgets: how many pods of a kind may be missing because somebody wants them gone."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import poddisruptionbudget
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import metadata
from drachma.validation import poddisruptionbudget as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
PodDisruptionBudget: apiVersion=str kind=str metadata=ObjectMeta! spec=PodDisruptionBudgetSpec!
    status=PodDisruptionBudgetStatus!
PodDisruptionBudgetSpec: maxUnavailable=IntOrString minAvailable=IntOrString selector=LabelSelector~=
    unhealthyPodEvictionPolicy=str?
PodDisruptionBudgetStatus: conditions={Condition:type}~ currentHealthy=int32!/ desiredHealthy=int32!/
    disruptedPods=<Time> disruptionsAllowed=int32!/ expectedPods=int32!/ observedGeneration=int64
"""
_NUMBERS: Final = """\
PodDisruptionBudget: metadata spec status
PodDisruptionBudgetSpec: minAvailable selector maxUnavailable unhealthyPodEvictionPolicy?
PodDisruptionBudgetStatus: observedGeneration disruptedPods disruptionsAllowed currentHealthy desiredHealthy
    expectedPods conditions
"""
_TEXTS: Final = """\
PodDisruptionBudget: How many pods of a kind may be missing because somebody wants them gone.
PodDisruptionBudgetSpec.minAvailable: How many pods must stay, or how many of a hundred.
PodDisruptionBudgetSpec.maxUnavailable: How many pods may be missing, or how many of a hundred.
PodDisruptionBudgetSpec.selector: Which pods the budget is for; none where there is no selector.
PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy: When pods may go that run and are not ready.
PodDisruptionBudgetStatus.disruptedPods: When pods were evicted that are still there.
PodDisruptionBudgetStatus.disruptionsAllowed: How many pods may go now.
PodDisruptionBudgetStatus.currentHealthy: How many pods are ready and stay.
PodDisruptionBudgetStatus.desiredHealthy: How many pods must stay.
PodDisruptionBudgetStatus.expectedPods: How many pods there should be.
PodDisruptionBudgetStatus.observedGeneration: Which generation of the budget the status is about.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.policy.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(poddisruptionbudget,),
    uses=(metatypes.META,),
)


class PodDisruptionBudgetStrategy(DocumentStrategy):
    counts_generations = True
    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(budget: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(budget, "spec"), cells.part(budget, "status")
    shares = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [cells.name(budget), *shares, status.get("disruptionsAllowed", 0), cells.since_creation(budget, now)]


KIND: Final = Kind(
    group="policy",
    versions=("v1",),
    plural="poddisruptionbudgets",
    kind="PodDisruptionBudget",
    namespaced=True,
    short_names=("pdb",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("PodDisruptionBudget")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Min Available", "How many pods must stay."),
            layout.text("Max Unavailable", "How many pods may be missing."),
            layout.integer("Allowed Disruptions", "How many pods may go now."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=PodDisruptionBudgetStrategy,
)
