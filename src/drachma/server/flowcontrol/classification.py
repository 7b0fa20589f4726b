"""Classification: the flow schema that a request matches, by its user and by what it asks for.

Schemas are tried by matching precedence, then by name; the first one that matches counts. A request always matches one,
because the mandatory schema ``catch-all`` has every user and every request.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.server.user import User

BY_USER: Final = "ByUser"
BY_NAMESPACE: Final = "ByNamespace"

_ALL: Final = "*"
_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


class Inquiry(NamedTuple):
    """The parts of a request that rules look at. ``path`` is empty for requests about a resource.

    ``namespace`` is empty for requests about the cluster.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource: ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class _ResourceRule(NamedTuple):
    """A resource rule; None stands for everything."""

    verbs: frozenset[str] | None
    groups: frozenset[str] | None
    resources: frozenset[str] | None
    namespaces: frozenset[str] | None
    has_cluster_scope: bool

    def matches(self, inquiry: Inquiry) -> bool:
        if self.verbs is not None and inquiry.verb not in self.verbs:
            return False
        if self.groups is not None and inquiry.group not in self.groups:
            return False
        if self.resources is not None and inquiry.full_resource not in self.resources:
            return False
        if not inquiry.namespace:
            return self.has_cluster_scope
        return self.namespaces is None or inquiry.namespace in self.namespaces


class _PathRule(NamedTuple):
    """A rule for other paths; None stands for everything."""

    verbs: frozenset[str] | None
    paths: frozenset[str] | None
    prefixes: tuple[str, ...]

    def matches(self, inquiry: Inquiry) -> bool:
        if self.verbs is not None and inquiry.verb not in self.verbs:
            return False
        return self.paths is None or inquiry.path in self.paths or inquiry.path.startswith(self.prefixes)


class _Subjects(NamedTuple):
    """The users of a rule."""

    users: frozenset[str]
    groups: frozenset[str]
    accounts: tuple[str, ...]
    """Prefixes of the names of all service accounts of a namespace."""

    def include(self, user: User) -> bool:
        return (
            user.name in self.users
            or _ALL in self.users
            or _ALL in self.groups
            or not self.groups.isdisjoint(user.groups)
            or user.name.startswith(self.accounts)
        )


class _Rule(NamedTuple):
    subjects: _Subjects
    resources: tuple[_ResourceRule, ...]
    paths: tuple[_PathRule, ...]

    def matches(self, inquiry: Inquiry) -> bool:
        rules: Sequence[_ResourceRule | _PathRule] = self.paths if inquiry.path else self.resources
        return any(rule.matches(inquiry) for rule in rules)


class Schema(msgspec.Struct, frozen=True, eq=False):
    """A flow schema. ``distinguisher`` is empty where all of its requests are one flow."""

    name: str
    uid: str
    level: str
    precedence: int
    distinguisher: str
    rules: tuple[_Rule, ...]

    def flow_of(self, user: User, inquiry: Inquiry) -> str:
        """Return the name of the flow that a request belongs to."""
        if self.distinguisher == BY_USER:
            return user.name
        return inquiry.namespace if self.distinguisher == BY_NAMESPACE else ""


def parse_schema(name: str, uid: str, spec: Mapping[str, Any]) -> Schema:
    """Return the schema of a stored spec."""
    return Schema(
        name=name,
        uid=uid,
        level=spec["priorityLevelConfiguration"]["name"],
        precedence=spec["matchingPrecedence"],
        distinguisher=(spec.get("distinguisherMethod") or {}).get("type", ""),
        rules=tuple(_parse_rule(rule) for rule in spec.get("rules") or ()),
    )


def _parse_rule(rule: Mapping[str, Any]) -> _Rule:
    users, groups, accounts = set(), set(), []
    for subject in rule.get("subjects") or ():
        match subject["kind"]:
            case "User":
                users.add(subject["user"]["name"])
            case "Group":
                groups.add(subject["group"]["name"])
            case "ServiceAccount":
                account = subject["serviceAccount"]
                prefix = f"{_ACCOUNT_PREFIX}{account['namespace']}:"
                if account["name"] == _ALL:
                    accounts.append(prefix)
                else:
                    users.add(prefix + account["name"])
    resources = tuple(
        _ResourceRule(
            verbs=_set(each.get("verbs")),
            groups=_set(each.get("apiGroups")),
            resources=_set(each.get("resources")),
            namespaces=_set(each.get("namespaces")),
            has_cluster_scope=bool(each.get("clusterScope")),
        )
        for each in rule.get("resourceRules") or ()
    )
    paths = tuple(
        _PathRule(
            verbs=_set(each.get("verbs")),
            paths=_set(each.get("nonResourceURLs")),
            prefixes=tuple(path[:-1] for path in each.get("nonResourceURLs") or () if path.endswith("/*")),
        )
        for each in rule.get("nonResourceRules") or ()
    )
    return _Rule(_Subjects(frozenset(users), frozenset(groups), tuple(accounts)), resources, paths)


def _set(values: Iterable[str] | None) -> frozenset[str] | None:
    result = frozenset(values or ())
    return None if _ALL in result else result


class Classifier:
    """Finds the schema of a request."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._schemas: Final = sorted(schemas, key=lambda each: (each.precedence, each.name))

    def classify(self, user: User, inquiry: Inquiry) -> Schema | None:
        """Return the first schema that matches, or None if no schema does."""
        for schema in self._schemas:
            for rule in schema.rules:
                if rule.subjects.include(user) and rule.matches(inquiry):
                    return schema
        return None
