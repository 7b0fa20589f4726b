"""Mutating admission policies: how objects are changed when they are admitted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.admissionregistration import registrationtypes
from drachma.server.kinds.admissionregistration.validatingadmissionpolicy import PolicyStrategy
from drachma.server.kinds.document import Document
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation.admissionregistration import mutatingadmissionpolicy as rules
from drachma.validation.fielderror import Errors


class MutatingAdmissionPolicyStrategy(PolicyStrategy):
    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content["spec"], stored=old["spec"])


def _cells(policy: Document, now: datetime) -> layout.Cells:
    count = len(cells.part(policy, "spec").get("mutations") or ())
    kind = registrationtypes.param_kind_shown(policy)
    return [cells.name(policy), count, kind, cells.since_creation(policy, now)]


KIND: Final = Kind(
    group=registrationtypes.GROUP,
    versions=("v1", "v1beta1"),
    plural="mutatingadmissionpolicies",
    kind="MutatingAdmissionPolicy",
    namespaced=False,
    categories=("api-extensions",),
    schemas={
        "v1": registrationtypes.PACKAGE.object("MutatingAdmissionPolicy"),
        "v1beta1": registrationtypes.BETA.object("MutatingAdmissionPolicy"),
    },
    deprecations={"v1beta1": resources.Deprecation(deprecated=37, removed=40, replacement="v1")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Mutations", "How many expressions give changes."),
            layout.text("ParamKind", "The kind of objects that parameters come from."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=MutatingAdmissionPolicyStrategy,
)
