"""Bindings of admission policies: where a policy holds, with which parameters, and what comes of it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.admissionregistration import registrationtypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation.admissionregistration import policybinding as rules
from drachma.validation.fielderror import Errors


class _BindingStrategy(DocumentStrategy):
    counts_generations = True
    rules: Callable[[Mapping[str, Any]], Errors]

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if spec.get("matchResources") is not None:
            spec["matchResources"] = registrationtypes.default_matching(spec["matchResources"])

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from type(self).rules(content["spec"])

    def updates_unconditionally(self, write: Write) -> bool:
        return False


class ValidatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    rules = staticmethod(rules.check_validating)


class MutatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    rules = staticmethod(rules.check_mutating)


def _cells(binding: Document, now: datetime) -> layout.Cells:
    policy, params = cells.part(binding, "spec").get("policyName", ""), registrationtypes.param_ref_shown(binding)
    return [cells.name(binding), policy, params, cells.since_creation(binding, now)]


_LAYOUT: Final = layout.Layout(
    (
        layout.NAME,
        layout.text("PolicyName", "The policy that is bound."),
        layout.text("ParamRef", "Which parameters the policy is given."),
        layout.AGE,
    ),
    _cells,
)

VALIDATING: Final = Kind(
    group=registrationtypes.GROUP,
    versions=("v1",),
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
    namespaced=False,
    categories=("api-extensions",),
    schemas={"v1": registrationtypes.PACKAGE.object("ValidatingAdmissionPolicyBinding")},
    layout=_LAYOUT,
    strategy=ValidatingAdmissionPolicyBindingStrategy,
)
MUTATING: Final = Kind(
    group=registrationtypes.GROUP,
    versions=("v1", "v1beta1"),
    plural="mutatingadmissionpolicybindings",
    kind="MutatingAdmissionPolicyBinding",
    namespaced=False,
    categories=("api-extensions",),
    schemas={
        "v1": registrationtypes.PACKAGE.object("MutatingAdmissionPolicyBinding"),
        "v1beta1": registrationtypes.BETA.object("MutatingAdmissionPolicyBinding"),
    },
    deprecations={"v1beta1": resources.Deprecation(deprecated=37, removed=40, replacement="v1")},
    layout=_LAYOUT,
    strategy=MutatingAdmissionPolicyBindingStrategy,
)
