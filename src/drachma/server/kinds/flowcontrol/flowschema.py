"""Flow schemas: which requests belong to which priority level."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import flowschema as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
FlowDistinguisherMethod: type=str*
FlowSchema: apiVersion=str kind=str metadata=ObjectMeta! spec=FlowSchemaSpec! status=FlowSchemaStatus!
FlowSchemaCondition: lastTransitionTime=Time! message=str reason=str status=str type=str
FlowSchemaSpec: distinguisherMethod=FlowDistinguisherMethod matchingPrecedence=int32*
    priorityLevelConfiguration=PriorityLevelConfigurationReference! rules=[PolicyRulesWithSubjects]
FlowSchemaStatus: conditions={FlowSchemaCondition:type}~
GroupSubject: name=str*
NonResourcePolicyRule: nonResourceURLs={str}! verbs={str}!
PolicyRulesWithSubjects: nonResourceRules=[NonResourcePolicyRule] resourceRules=[ResourcePolicyRule]
    subjects=[Subject]!
PriorityLevelConfigurationReference: name=str*
ResourcePolicyRule: apiGroups={str}! clusterScope=bool namespaces={str}! resources={str}! verbs={str}!
ServiceAccountSubject: name=str* namespace=str*
Subject: group=GroupSubject kind=str* serviceAccount=ServiceAccountSubject user=UserSubject
UserSubject: name=str*
"""
_NUMBERS: Final = """\
FlowDistinguisherMethod: type
FlowSchema: metadata spec status
FlowSchemaCondition: type status lastTransitionTime reason message
FlowSchemaSpec: priorityLevelConfiguration matchingPrecedence distinguisherMethod rules
FlowSchemaStatus: conditions
GroupSubject: name
NonResourcePolicyRule: verbs 6:nonResourceURLs
PolicyRulesWithSubjects: subjects resourceRules nonResourceRules
PriorityLevelConfigurationReference: name
ResourcePolicyRule: verbs apiGroups resources clusterScope namespaces
ServiceAccountSubject: namespace name
Subject: kind user group serviceAccount
UserSubject: name
"""
_TEXTS: Final = """\
FlowSchema: Which requests belong to which priority level.
FlowSchemaSpec.matchingPrecedence: Of several schemas the one with the lowest number counts.
FlowSchemaSpec.priorityLevelConfiguration: The level that they belong to.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.flowcontrol.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class FlowSchemaStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or rules.DEFAULT_PRECEDENCE

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"], name=subject.metadata.get("name", ""))

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(schema: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(schema, "spec"), cells.part(schema, "status")
    conditions = status.get("conditions") or ()
    dangling = next((each.get("status", "") for each in conditions if each.get("type") == "Dangling"), "?")
    return [
        cells.name(schema),
        cells.part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        cells.part(spec, "distinguisherMethod").get("type") or "<none>",
        cells.since_creation(schema, now),
        dangling,
    ]


KIND: Final = Kind(
    group="flowcontrol.apiserver.k8s.io",
    versions=("v1",),
    plural="flowschemas",
    kind="FlowSchema",
    namespaced=False,
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("FlowSchema")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("PriorityLevel", "The level that requests belong to."),
            layout.text("MatchingPrecedence", "Of several schemas the one with the lowest number counts."),
            layout.text("DistinguisherMethod", "How requests of one level are told apart."),
            layout.AGE,
            layout.text("MissingPL", "Whether the level is not there."),
        ),
        _cells,
    ),
    strategy=FlowSchemaStrategy,
)
