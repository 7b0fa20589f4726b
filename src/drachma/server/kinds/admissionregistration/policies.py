"""Validating and mutating admission policies and their bindings, and defaults that webhooks share with them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation.admissionregistration import policies
from drachma.validation.fielderror import Errors

GROUP: Final = "admissionregistration.k8s.io"


def default_matching(resources: Document | None) -> Any:
    """Return match constraints or match resources with defaults; None if absent."""
    if resources is None:
        return None
    rules = {
        field: [default_rule(rule) for rule in resources[field]]
        for field in ("resourceRules", "excludeResourceRules")
        if resources.get(field)
    }
    defaults = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    return {**defaults, **{field: value for field, value in resources.items() if value is not None}, **rules}


def default_rule(rule: Document) -> Document:
    """Return a rule with its default scope, which is all scopes."""
    return {**rule, "scope": "*"} if rule.get("scope") is None else rule


def _param_kind_cell(policy: Document) -> str:
    """Return the column with the kind of a policy's parameters."""
    kind = (policy.get("spec") or {}).get("paramKind")
    return "<unset>" if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _param_ref_cell(binding: Document) -> str:
    """Return the column with the parameters of a binding."""
    ref = (binding.get("spec") or {}).get("paramRef")
    if ref is None:
        return "<unset>"
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return _selector_cell(ref.get("selector") or {})


def _selector_cell(selector: Document) -> str:
    labels = ",".join(f"{key}: {value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = " ".join(
        f"{{{each.get('key', '')} {each.get('operator', '')} [{' '.join(each.get('values') or ())}]}}"
        for each in selector.get("matchExpressions") or ()
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[{expressions}],}}"


class PolicyStrategy(DocumentStrategy):
    """Strategy of validating policies, and base of mutating ones."""

    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if not spec.get("failurePolicy"):
            spec["failurePolicy"] = "Fail"
        if spec.get("matchConstraints") is not None:
            spec["matchConstraints"] = default_matching(spec["matchConstraints"])

    def updates_unconditionally(self, write: Write) -> bool:
        return False


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from policies.check_validating(content["spec"], name=subject.metadata.get("name", ""))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from policies.check_validating(content["spec"], name=subject.metadata.get("name", ""), old=old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from policies.check_status(content.get("status") or {})


def _validating_cells(policy: Document, now: datetime) -> layout.Cells:
    count = len(cells.part(policy, "spec").get("validations") or ())
    kind = _param_kind_cell(policy)
    return [cells.name(policy), count, kind, cells.since_creation(policy, now)]


VALIDATING: Final = Kind(
    group=GROUP,
    versions=("v1",),
    plural="validatingadmissionpolicies",
    kind="ValidatingAdmissionPolicy",
    namespaced=False,
    categories=("api-extensions",),
    subresources=(resources.status(("metadata",), ("spec",)),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Validations", "The number of validations."),
            layout.text("ParamKind", "The kind of objects that parameters come from."),
            layout.AGE,
        ),
        _validating_cells,
    ),
    strategy=ValidatingAdmissionPolicyStrategy,
)


class MutatingAdmissionPolicyStrategy(PolicyStrategy):
    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from policies.check_mutating(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from policies.check_mutating(content["spec"], old=old["spec"])


def _mutating_cells(policy: Document, now: datetime) -> layout.Cells:
    count = len(cells.part(policy, "spec").get("mutations") or ())
    kind = _param_kind_cell(policy)
    return [cells.name(policy), count, kind, cells.since_creation(policy, now)]


MUTATING: Final = Kind(
    group=GROUP,
    versions=("v1", "v1beta1"),
    plural="mutatingadmissionpolicies",
    kind="MutatingAdmissionPolicy",
    namespaced=False,
    categories=("api-extensions",),
    deprecations={"v1beta1": resources.Deprecation(deprecated=37, removed=40, replacement="v1")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Mutations", "The number of mutations."),
            layout.text("ParamKind", "The kind of objects that parameters come from."),
            layout.AGE,
        ),
        _mutating_cells,
    ),
    strategy=MutatingAdmissionPolicyStrategy,
)


class PolicyBindingStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if spec.get("matchResources") is not None:
            spec["matchResources"] = default_matching(spec["matchResources"])

    def updates_unconditionally(self, write: Write) -> bool:
        return False


def _binding_cells(binding: Document, now: datetime) -> layout.Cells:
    policy, params = cells.part(binding, "spec").get("policyName", ""), _param_ref_cell(binding)
    return [cells.name(binding), policy, params, cells.since_creation(binding, now)]


_LAYOUT: Final = layout.Layout(
    (
        layout.NAME,
        layout.text("PolicyName", "The policy that is bound."),
        layout.text("ParamRef", "The parameters of the policy."),
        layout.AGE,
    ),
    _binding_cells,
)

VALIDATING_BINDING: Final = Kind(
    group=GROUP,
    versions=("v1",),
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
    namespaced=False,
    categories=("api-extensions",),
    layout=_LAYOUT,
    rules=policies.KINDS["ValidatingAdmissionPolicyBinding"],
    strategy=PolicyBindingStrategy,
)
MUTATING_BINDING: Final = Kind(
    group=GROUP,
    versions=("v1", "v1beta1"),
    plural="mutatingadmissionpolicybindings",
    kind="MutatingAdmissionPolicyBinding",
    namespaced=False,
    categories=("api-extensions",),
    deprecations={"v1beta1": resources.Deprecation(deprecated=37, removed=40, replacement="v1")},
    layout=_LAYOUT,
    rules=policies.KINDS["MutatingAdmissionPolicyBinding"],
    strategy=PolicyBindingStrategy,
)
