"""Roles and bindings as the store has them now, indexed by user.

An application has one instance. Its results are immutable.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.server.access import policyrules
from drachma.server.access.authorization import Decision, Opinion
from drachma.server.access.policyrules import Rule
from drachma.server.reads import follower
from drachma.server.reads.reader import Reader
from drachma.server.user import User
from drachma.store import record
from drachma.validation import rbac
from drachma.values import quotation

ROLES: Final = f"{rbac.GROUP}/roles"
CLUSTER_ROLES: Final = f"{rbac.GROUP}/clusterroles"
BINDINGS: Final = f"{rbac.GROUP}/rolebindings"
CLUSTER_BINDINGS: Final = f"{rbac.GROUP}/clusterrolebindings"

_RESOURCES: Final = {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}


_CACHED: Final = 1024
"""Users and namespaces whose permissions are cached."""


_GROUPS: Final = 256
"""Groups of a user beyond which its permissions are not cached; reviews can name any number."""


class Grant(NamedTuple):
    """Role that a binding gives to a subject; ``opinion`` is the opinion on actions that it allows."""

    binding: record.Key
    role: record.Key
    opinion: Opinion

    @property
    def absence(self) -> str:
        """Return the problem if the role does not exist."""
        kind = self.role.resource.rpartition("/")[2].removesuffix("s")
        return f"{kind}.{rbac.GROUP} {quotation.quote(self.role.name)} not found"


class ScopePermissions(NamedTuple):
    """Combined permissions of a user in one scope: permissions, rules and missing roles."""

    permissions: policyrules.Permissions[Opinion]
    rules: tuple[Rule, ...]
    absences: tuple[str, ...]


_Grants = dict[str, dict[record.Key, Grant]]


class Roles:
    """All roles and bindings of a store. Every question is answered from the state at that moment."""

    def __init__(self, store: Reader) -> None:
        index = self._index = _Index()
        self._follower = follower.Follower(store, (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS), index)

    def find(self, user: User, namespace: str) -> Sequence[ScopePermissions]:
        """Return the permissions of a user in the cluster, and then those in a namespace, if one is given."""
        self._follower.catch_up()
        index = self._index
        everywhere = index.find(user, "")
        if not namespace or not index.has_bindings(namespace):
            return (everywhere,)
        return everywhere, index.find(user, namespace)


class _Index:
    """Rules by role, and grants by namespace and subject; those of cluster scope have no namespace."""

    def __init__(self) -> None:
        self._rules: dict[record.Key, tuple[Rule, ...]] = {}
        self._users: dict[str, _Grants] = {}
        self._groups: dict[str, _Grants] = {}
        self._subjects: dict[record.Key, tuple[tuple[str, bool], ...]] = {}
        self._cache: dict[tuple[str, str, tuple[str, ...]], ScopePermissions] = {}

    def has_bindings(self, namespace: str) -> bool:
        return namespace in self._users or namespace in self._groups

    def find(self, user: User, namespace: str) -> ScopePermissions:
        """Return the permissions of a user in one namespace, or in the cluster scope."""
        if len(user.groups) > _GROUPS:
            return self._combine(user, namespace)
        key = namespace, user.name, user.groups
        permissions = self._cache.get(key)
        if permissions is None:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            permissions = self._cache[key] = self._combine(user, namespace)
        return permissions

    def _combine(self, user: User, namespace: str) -> ScopePermissions:
        grants: dict[record.Key, Grant] = {}
        users, groups = self._users.get(namespace, {}), self._groups.get(namespace, {})
        for each in (users.get(user.name), *map(groups.get, user.groups)):
            grants = {**(each or {}), **grants}
        roles = [(grant, self._rules.get(grant.role)) for _, grant in sorted(grants.items())]
        return ScopePermissions(
            policyrules.Permissions([(grant.opinion, rules) for grant, rules in roles if rules is not None]),
            tuple(rule for _, rules in roles for rule in rules or ()),
            tuple(dict.fromkeys(grant.absence for grant, rules in roles if rules is None)),
        )

    def clear(self) -> None:
        for each in (self._rules, self._users, self._groups, self._subjects, self._cache):
            each.clear()

    def put(self, source: record.Record) -> None:
        self._cache.clear()
        if source.key.resource in (ROLES, CLUSTER_ROLES):
            self._rules[source.key] = policyrules.read(source.value.get("rules"))
            return
        self._forget(source.key)
        grants = dict(reversed(list(_grants(source))))
        for (name, is_group), grant in grants.items():
            place = (self._groups if is_group else self._users).setdefault(source.key.namespace, {})
            place.setdefault(name, {})[source.key] = grant
        self._subjects[source.key] = tuple(grants)

    def drop(self, source: record.Record) -> None:
        self._cache.clear()
        self._rules.pop(source.key, None)
        self._forget(source.key)

    def _forget(self, binding: record.Key) -> None:
        for name, is_group in self._subjects.pop(binding, ()):
            places = self._groups if is_group else self._users
            grants = places[binding.namespace]
            del grants[name][binding]
            if not grants[name]:
                del grants[name]
            if not grants:
                del places[binding.namespace]


def _grants(binding: record.Record) -> Iterator[tuple[tuple[str, bool], Grant]]:
    """Yield the subjects of a binding: the name of a user or group, a flag for groups, and the grant."""
    key, content = binding.key, binding.value
    role: Mapping[str, str] = content["roleRef"]
    kind, name = role.get("kind", ""), role.get("name", "")
    resource = _RESOURCES.get(kind, kind)
    role_key = record.Key(resource, key.namespace if resource == ROLES else "", name)
    for subject in content.get("subjects") or ():
        user = _user(subject, key.namespace)
        if user is not None:
            source = (
                f"{_format_binding(key)} of {kind} {quotation.quote(name)} to {_format_subject(subject, key.namespace)}"
            )
            opinion = Opinion(Decision.ALLOWED, f"RBAC: allowed by {source}")
            yield user, Grant(key, role_key, opinion)


def _user(subject: Mapping[str, Any], namespace: str) -> tuple[str, bool] | None:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return name, False
        case "Group":
            return name, True
        case "ServiceAccount":
            own = subject.get("namespace") or namespace
            return (f"system:serviceaccount:{own}:{name}", False) if own else None
    return None


def _format_binding(binding: record.Key) -> str:
    if binding.namespace:
        return f"RoleBinding {quotation.quote(f'{binding.name}/{binding.namespace}')}"
    return f"ClusterRoleBinding {quotation.quote(binding.name)}"


def _format_subject(subject: Mapping[str, Any], namespace: str) -> str:
    kind, name = subject["kind"], subject.get("name", "")
    full_name = f"{name}/{subject.get('namespace') or namespace}" if kind == "ServiceAccount" else name
    return f"{kind} {quotation.quote(full_name)}"
