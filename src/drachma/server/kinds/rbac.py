"""Kinds of ``rbac.authorization.k8s.io``: roles and role bindings, of namespaces and of the cluster."""

from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.validation import metadata, rbac

_KINDS: Final = ("User", "Group", "ServiceAccount")

TRAITS: Final = resources.Traits(creates_on_update=True)


class RoleStrategy(DocumentStrategy):
    """Strategy of roles and cluster roles."""

    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)
    rechecks_names = True


class BindingStrategy(DocumentStrategy):
    """Strategy of role bindings and cluster role bindings."""

    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        role = content.get("roleRef") or {}
        if not role.get("apiGroup"):
            content["roleRef"] = {**role, "apiGroup": rbac.GROUP}
        subjects = content.get("subjects")
        if subjects:
            content["subjects"] = [_default_group(subject) for subject in subjects]


def _default_group(subject: Document) -> Document:
    if subject.get("apiGroup") or subject.get("kind") not in ("User", "Group"):
        return subject
    return {**subject, "apiGroup": rbac.GROUP}


def _cells(binding: Document, now: datetime) -> layout.Cells:
    role, subjects = cells.part(binding, "roleRef"), binding.get("subjects") or ()
    names = [", ".join(_subject_name(each) for each in subjects if each.get("kind") == kind) for kind in _KINDS]
    role_name = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [cells.name(binding), role_name, cells.since_creation(binding, now), *names]


def _subject_name(subject: Document) -> str:
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


CLUSTER_ROLE: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="clusterroles",
    kind="ClusterRole",
    namespaced=False,
    traits=TRAITS,
    layout=layout.CREATED,
    rules=rbac.KINDS["ClusterRole"],
    strategy=RoleStrategy,
)


CLUSTER_ROLE_BINDING: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="clusterrolebindings",
    kind="ClusterRoleBinding",
    namespaced=False,
    traits=TRAITS,
    layout=BINDING_LAYOUT,
    rules=rbac.KINDS["ClusterRoleBinding"],
    strategy=BindingStrategy,
)


ROLE: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="roles",
    kind="Role",
    namespaced=True,
    traits=TRAITS,
    layout=layout.CREATED,
    rules=rbac.KINDS["Role"],
    strategy=RoleStrategy,
)


ROLE_BINDING: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="rolebindings",
    kind="RoleBinding",
    namespaced=True,
    traits=TRAITS,
    layout=BINDING_LAYOUT,
    rules=rbac.KINDS["RoleBinding"],
    strategy=BindingStrategy,
)
