"""The types of roles and bindings, and what the four kinds have in common."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.strategy import Subject
from drachma.validation import metadata, rbac
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
AggregationRule: clusterRoleSelectors=[LabelSelector]
ClusterRole: aggregationRule=AggregationRule apiVersion=str kind=str metadata=ObjectMeta! rules=[PolicyRule]!
ClusterRoleBinding: apiVersion=str kind=str metadata=ObjectMeta! roleRef=RoleRef!* subjects=[Subject]
PolicyRule: apiGroups=[str] nonResourceURLs=[str] resourceNames=[str] resources=[str] verbs=[str]!*
Role: apiVersion=str kind=str metadata=ObjectMeta! rules=[PolicyRule]!
RoleBinding: apiVersion=str kind=str metadata=ObjectMeta! roleRef=RoleRef!* subjects=[Subject]
RoleRef!: apiGroup=str!/ kind=str* name=str*
Subject!: apiGroup=str kind=str* name=str* namespace=str
"""
_NUMBERS: Final = """\
AggregationRule: clusterRoleSelectors
ClusterRole: metadata rules aggregationRule
ClusterRoleBinding: metadata subjects roleRef
PolicyRule: verbs apiGroups resources resourceNames nonResourceURLs
Role: metadata rules
RoleBinding: metadata subjects roleRef
RoleRef: apiGroup kind name
Subject: kind apiGroup name namespace
"""
_TEXTS: Final = """\
AggregationRule.clusterRoleSelectors: Labels of the roles whose rules this one has; any of the selectors will do.
ClusterRole: Rules about what may be done, in one namespace or all of them, depending on how the role is bound.
ClusterRole.aggregationRule: Which roles this one is put together from; a controller writes its rules then.
ClusterRole.rules: What whoever has the role may do.
ClusterRoleBinding: Gives subjects a cluster role, in all namespaces and outside of them.
ClusterRoleBinding.roleRef: The role; it cannot be changed.
ClusterRoleBinding.subjects: Who has the role.
PolicyRule: What may be done to what; a rule cannot forbid anything.
PolicyRule.apiGroups: Groups of the resources; "" is the core group and "*" all of them.
PolicyRule.nonResourceURLs: Paths beside the resources; a "*" at the end stands for whatever follows.
PolicyRule.resourceNames: Names of the objects; any where there are none.
PolicyRule.resources: Resources, those below them as "pods/log"; "*" is all of them, "*/scale" that of all resources.
PolicyRule.verbs: What may be done; "*" is everything.
Role: Rules about what may be done in a namespace.
Role.rules: What whoever has the role may do.
RoleBinding: Gives subjects a role in a namespace: one of that namespace, or a cluster role.
RoleBinding.roleRef: The role; it cannot be changed.
RoleBinding.subjects: Who has the role.
RoleRef: Which role is meant.
RoleRef.apiGroup: The group of the role.
RoleRef.kind: Role or ClusterRole.
RoleRef.name: The name of the role.
Subject: A user, a group of users, or a service account.
Subject.apiGroup: The group of the subject; empty for service accounts.
Subject.kind: User, Group or ServiceAccount.
Subject.name: The name of the subject.
Subject.namespace: The namespace of a service account.
"""
TYPES: Final = notation.Types("io.k8s.api.rbac.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))

_KINDS: Final = ("User", "Group", "ServiceAccount")

TRAITS: Final = resources.Traits(creates_on_update=True)


class RoleStrategy(DocumentStrategy):
    """Roles of a namespace, and of the cluster."""

    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)
    rechecks_names = True

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rbac.check_rules(content.get("rules") or (), namespaced=self.resource.namespaced)
        yield from rbac.check_aggregation(content.get("aggregationRule"))


class BindingStrategy(DocumentStrategy):
    """Bindings in a namespace, and in the cluster."""

    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        role = content.get("roleRef") or {}
        if not role.get("apiGroup"):
            content["roleRef"] = {**role, "apiGroup": rbac.GROUP}
        subjects = content.get("subjects")
        if subjects:
            content["subjects"] = [_with_group(subject) for subject in subjects]

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rbac.check_binding(content, namespaced=self.resource.namespaced)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rbac.check_same_role(content, old)


def _with_group(subject: Document) -> Document:
    if subject.get("apiGroup") or subject.get("kind") not in ("User", "Group"):
        return subject
    return {**subject, "apiGroup": rbac.GROUP}


def _cells(binding: Document, now: datetime) -> layout.Cells:
    role, subjects = cells.part(binding, "roleRef"), binding.get("subjects") or ()
    names = [", ".join(_shown(each) for each in subjects if each.get("kind") == kind) for kind in _KINDS]
    shown = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [cells.name(binding), shown, cells.since_creation(binding, now), *names]


def _shown(subject: Document) -> str:
    name = str(subject.get("name", ""))
    return f"{subject.get('namespace', '')}/{name}" if subject.get("kind") == "ServiceAccount" else name


BINDING_LAYOUT: Final = layout.Layout(
    (
        layout.NAME,
        layout.text("Role", "The role that the binding gives."),
        layout.AGE,
        layout.wide("Users", "Users who have the role."),
        layout.wide("Groups", "Groups that have the role."),
        layout.wide("ServiceAccounts", "Service accounts that have the role."),
    ),
    _cells,
)
