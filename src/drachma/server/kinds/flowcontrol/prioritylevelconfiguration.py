"""Priority levels: how many requests run at once, and how others wait."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import prioritylevelconfiguration as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
ExemptPriorityLevelConfiguration: lendablePercent=int32? nominalConcurrencyShares=int32?
LimitResponse: queuing=QueuingConfiguration type=str*
LimitedPriorityLevelConfiguration: borrowingLimitPercent=int32? lendablePercent=int32? limitResponse=LimitResponse!
    nominalConcurrencyShares=int32?
PriorityLevelConfiguration: apiVersion=str kind=str metadata=ObjectMeta! spec=PriorityLevelConfigurationSpec!
    status=PriorityLevelConfigurationStatus!
PriorityLevelConfigurationCondition: lastTransitionTime=Time! message=str reason=str status=str type=str
PriorityLevelConfigurationSpec: exempt=ExemptPriorityLevelConfiguration limited=LimitedPriorityLevelConfiguration
    type=str*
PriorityLevelConfigurationStatus: conditions={PriorityLevelConfigurationCondition:type}~
QueuingConfiguration: handSize=int32* queueLengthLimit=int32* queues=int32*
"""
_NUMBERS: Final = """\
ExemptPriorityLevelConfiguration: nominalConcurrencyShares? lendablePercent?
LimitResponse: type queuing
LimitedPriorityLevelConfiguration: nominalConcurrencyShares? limitResponse lendablePercent? borrowingLimitPercent?
PriorityLevelConfiguration: metadata spec status
PriorityLevelConfigurationCondition: type status lastTransitionTime reason message
PriorityLevelConfigurationSpec: type limited exempt
PriorityLevelConfigurationStatus: conditions
QueuingConfiguration: queues handSize queueLengthLimit
"""
_TEXTS: Final = """\
PriorityLevelConfiguration: How many requests of a level are answered at once.
PriorityLevelConfigurationSpec.type: Exempt, or Limited.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.flowcontrol.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
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

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"], name=subject.metadata.get("name", ""))

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(level: Document, now: datetime) -> layout.Cells:
    spec = cells.part(level, "spec")
    limited = spec.get("limited")
    shares: Any = "<none>"
    queuing: Document = {}
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares", 0)
        queuing = cells.part(cells.part(limited, "limitResponse"), "queuing")
    queues = [queuing.get(field, "<none>") for field in ("queues", "handSize", "queueLengthLimit")]
    return [cells.name(level), spec.get("type", ""), shares, *queues, cells.since_creation(level, now)]


KIND: Final = Kind(
    group="flowcontrol.apiserver.k8s.io",
    versions=("v1",),
    plural="prioritylevelconfigurations",
    kind="PriorityLevelConfiguration",
    namespaced=False,
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("PriorityLevelConfiguration")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Type", "Whether the level is limited."),
            layout.text("NominalConcurrencyShares", "How much of the server it has."),
            layout.text("Queues", "How many queues its requests wait in."),
            layout.text("HandSize", "How many queues there are for one flow."),
            layout.text("QueueLengthLimit", "How many requests wait in a queue."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=PriorityLevelConfigurationStrategy,
)
