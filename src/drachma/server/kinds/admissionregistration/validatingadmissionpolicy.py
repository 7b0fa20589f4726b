"""Validating admission policies: what objects must be like to be admitted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.admissionregistration import registrationtypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation.admissionregistration import validatingadmissionpolicy as rules
from drachma.validation.fielderror import Errors


class PolicyStrategy(DocumentStrategy):
    """What policies of both sorts have in common."""

    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if not spec.get("failurePolicy"):
            spec["failurePolicy"] = "Fail"
        if spec.get("matchConstraints") is not None:
            spec["matchConstraints"] = registrationtypes.default_matching(spec["matchConstraints"])

    def updates_unconditionally(self, write: Write) -> bool:
        return False


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"], name=subject.metadata.get("name", ""))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content["spec"], name=subject.metadata.get("name", ""), stored=old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(policy: Document, now: datetime) -> layout.Cells:
    count = len(cells.part(policy, "spec").get("validations") or ())
    kind = registrationtypes.param_kind_shown(policy)
    return [cells.name(policy), count, kind, cells.since_creation(policy, now)]


KIND: Final = Kind(
    group=registrationtypes.GROUP,
    versions=("v1",),
    plural="validatingadmissionpolicies",
    kind="ValidatingAdmissionPolicy",
    namespaced=False,
    categories=("api-extensions",),
    subresources=(resources.status(("metadata",), ("spec",)),),
    schemas={"v1": registrationtypes.PACKAGE.object("ValidatingAdmissionPolicy")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Validations", "How many expressions must hold."),
            layout.text("ParamKind", "The kind of objects that parameters come from."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=ValidatingAdmissionPolicyStrategy,
)
