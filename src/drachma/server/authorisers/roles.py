"""Roles and who has them, as the store has them now, arranged by who asks.

One of these belongs to an application. What it hands out is immutable.
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


_HELD: Final = 1024
"""For how many users and places it is remembered what they come to; what is forgotten is worked out again."""


_GROUPS: Final = 256
"""Of users with more groups than that nothing is remembered: reviews can ask about any number."""


class Grant(NamedTuple):
    """That a binding gives a role to a subject; ``opinion`` is what is said of who may do something because of it."""

    binding: record.Key
    role: record.Key
    opinion: Opinion

    @property
    def absence(self) -> str:
        """What is wrong where the role is not there."""
        kind = self.role.resource.rpartition("/")[2].removesuffix("s")
        return f"{kind}.{rbac.GROUP} {quotation.quote(self.role.name)} not found"


class Held(NamedTuple):
    """What a user has in one place, put together: what it may do, its rules, and roles that are not there."""

    permissions: policyrules.Permissions[Opinion]
    rules: tuple[Rule, ...]
    absences: tuple[str, ...]


_Grants = dict[str, dict[record.Key, Grant]]


class Roles:
    """All roles and bindings of a store. Each question is answered by what is stored at that moment."""

    def __init__(self, store: Reader) -> None:
        index = self._index = _Index()
        self._follower = follower.Follower(store, (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS), index)

    def of(self, user: User, namespace: str) -> Sequence[Held]:
        """What a user has everywhere, and then what it has in a namespace, if there is one."""
        self._follower.catch_up()
        index = self._index
        everywhere = index.held(user, "")
        if not namespace or not index.has_bindings(namespace):
            return (everywhere,)
        return everywhere, index.held(user, namespace)


class _Index:
    """Rules by the keys of roles, and grants by namespace and subject; those of the whole cluster have no namespace."""

    def __init__(self) -> None:
        self._rules: dict[record.Key, tuple[Rule, ...]] = {}
        self._users: dict[str, _Grants] = {}
        self._groups: dict[str, _Grants] = {}
        self._subjects: dict[record.Key, tuple[tuple[str, bool], ...]] = {}
        self._held: dict[tuple[str, str, tuple[str, ...]], Held] = {}

    def has_bindings(self, namespace: str) -> bool:
        return namespace in self._users or namespace in self._groups

    def held(self, user: User, namespace: str) -> Held:
        """What a user has in a namespace alone, or outside of all."""
        if len(user.groups) > _GROUPS:
            return self._put_together(user, namespace)
        key = namespace, user.name, user.groups
        held = self._held.get(key)
        if held is None:
            if len(self._held) >= _HELD:
                self._held.clear()
            held = self._held[key] = self._put_together(user, namespace)
        return held

    def _put_together(self, user: User, namespace: str) -> Held:
        grants: dict[record.Key, Grant] = {}
        users, groups = self._users.get(namespace, {}), self._groups.get(namespace, {})
        for each in (users.get(user.name), *map(groups.get, user.groups)):
            grants = {**(each or {}), **grants}
        roles = [(grant, self._rules.get(grant.role)) for _, grant in sorted(grants.items())]
        return Held(
            policyrules.Permissions([(grant.opinion, rules) for grant, rules in roles if rules is not None]),
            tuple(rule for _, rules in roles for rule in rules or ()),
            tuple(dict.fromkeys(grant.absence for grant, rules in roles if rules is None)),
        )

    def clear(self) -> None:
        for each in (self._rules, self._users, self._groups, self._subjects, self._held):
            each.clear()

    def put(self, stored: record.Record) -> None:
        self._held.clear()
        if stored.key.resource in (ROLES, CLUSTER_ROLES):
            self._rules[stored.key] = policyrules.read(stored.value.get("rules"))
            return
        self._forget(stored.key)
        grants = dict(reversed(list(_grants(stored))))
        for (name, is_group), grant in grants.items():
            place = (self._groups if is_group else self._users).setdefault(stored.key.namespace, {})
            place.setdefault(name, {})[stored.key] = grant
        self._subjects[stored.key] = tuple(grants)

    def drop(self, stored: record.Record) -> None:
        self._held.clear()
        self._rules.pop(stored.key, None)
        self._forget(stored.key)

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
    """Whom a binding gives its role: the name of a user or a group, and which of the two it is."""
    key, content = binding.key, binding.value
    role: Mapping[str, str] = content["roleRef"]
    kind, name = role.get("kind", ""), role.get("name", "")
    resource = _RESOURCES.get(kind, kind)
    role_key = record.Key(resource, key.namespace if resource == ROLES else "", name)
    for subject in content.get("subjects") or ():
        user = _user(subject, key.namespace)
        if user is not None:
            source = f"{_shown(key)} of {kind} {quotation.quote(name)} to {_shown_subject(subject, key.namespace)}"
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


def _shown(binding: record.Key) -> str:
    if binding.namespace:
        return f"RoleBinding {quotation.quote(f'{binding.name}/{binding.namespace}')}"
    return f"ClusterRoleBinding {quotation.quote(binding.name)}"


def _shown_subject(subject: Mapping[str, Any], namespace: str) -> str:
    kind, name = subject["kind"], subject.get("name", "")
    shown = f"{name}/{subject.get('namespace') or namespace}" if kind == "ServiceAccount" else name
    return f"{kind} {quotation.quote(shown)}"
