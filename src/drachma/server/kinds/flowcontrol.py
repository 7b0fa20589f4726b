"""Kinds of ``flowcontrol.apiserver.k8s.io``: flow schemas and priority levels."""

from datetime import datetime
from typing import Any, Final

from drachma.claims import conditions
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.validation import flowcontrol as rules


class FlowSchemaStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or rules.DEFAULT_PRECEDENCE


def _flow_schema_cells(schema: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(schema, "spec"), cells.part(schema, "status")
    dangling = conditions.find_document(status.get("conditions") or (), "Dangling")
    return [
        cells.name(schema),
        cells.part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        cells.part(spec, "distinguisherMethod").get("type") or "<none>",
        cells.since_creation(schema, now),
        "?" if dangling is None else dangling.get("status", ""),
    ]


FLOW_SCHEMA: Final = Kind(
    group="flowcontrol.apiserver.k8s.io",
    versions=("v1",),
    plural="flowschemas",
    kind="FlowSchema",
    namespaced=False,
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("PriorityLevel", "The level that requests belong to."),
            layout.text("MatchingPrecedence", "The rank among schemas; the lowest number wins."),
            layout.text("DistinguisherMethod", "The attribute that distinguishes flows."),
            layout.AGE,
            layout.text("MissingPL", "True if the priority level does not exist."),
        ),
        _flow_schema_cells,
    ),
    rules=rules.KINDS["FlowSchema"],
    strategy=FlowSchemaStrategy,
)


_QUEUING: Final = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}
_SHARES: Final = 30


class PriorityLevelConfigurationStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if spec.get("exempt") is not None:
            spec["exempt"] = {"nominalConcurrencyShares": 0, "lendablePercent": 0, **spec["exempt"]}
        if spec.get("limited") is not None:
            limited = {"nominalConcurrencyShares": _SHARES, "lendablePercent": 0, **spec["limited"]}
            answer = cells.part(limited, "limitResponse")
            if answer.get("queuing") is not None:
                queuing = {field: answer["queuing"].get(field) or value for field, value in _QUEUING.items()}
                limited["limitResponse"] = {**answer, "queuing": {**answer["queuing"], **queuing}}
            spec["limited"] = limited


def _priority_level_cells(level: Document, now: datetime) -> layout.Cells:
    spec = cells.part(level, "spec")
    limited = spec.get("limited")
    shares: Any = "<none>"
    queuing: Document = {}
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares", 0)
        queuing = cells.part(cells.part(limited, "limitResponse"), "queuing")
    queues = [queuing.get(field, "<none>") for field in ("queues", "handSize", "queueLengthLimit")]
    return [cells.name(level), spec.get("type", ""), shares, *queues, cells.since_creation(level, now)]


PRIORITY_LEVEL: Final = Kind(
    group="flowcontrol.apiserver.k8s.io",
    versions=("v1",),
    plural="prioritylevelconfigurations",
    kind="PriorityLevelConfiguration",
    namespaced=False,
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "Exempt or Limited."),
            layout.text("NominalConcurrencyShares", "The share of the server's concurrency."),
            layout.text("Queues", "The number of queues."),
            layout.text("HandSize", "The number of queues of a flow."),
            layout.text("QueueLengthLimit", "The maximum length of a queue."),
            layout.AGE,
        ),
        _priority_level_cells,
    ),
    rules=rules.KINDS["PriorityLevelConfiguration"],
    strategy=PriorityLevelConfigurationStrategy,
)
