"""Matching of requests with policies, bindings and webhooks: rules, selectors and equivalent versions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.server import status
from drachma.server.admission.request import CREATE, NAMESPACES, UPDATE, Request
from drachma.server.kinds import builtin
from drachma.server.kinds.core import namespace as namespace_kind
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation import workload
from drachma.values import labels

_ANY: Final = "*"
_EXACT: Final = "Exact"

EXEMPT: Final = frozenset(
    f"admissionregistration.k8s.io/{plural}"
    for plural in (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)
"""Resources outside of policies and webhooks, so that a policy that locks out all users can be removed."""


class Place(NamedTuple):
    """Attributes of a request that rules match, apart from its name; there are few different ones."""

    resource: str
    group: str
    subresource: str
    operation: str
    is_namespaced: bool

    @classmethod
    def of(cls, request: Request) -> "Place":
        resource = request.write.resource
        is_namespaced = bool(request.namespace) and resource.group_resource != NAMESPACES
        return cls(resource.plural, resource.group, request.subresource, request.operation, is_namespaced)


class _Rule:
    """One resource rule."""

    __slots__ = ("_groups", "_operations", "_resources", "_scope", "_versions", "names")

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self._operations = frozenset(rule.get("operations") or ())
        self._groups = frozenset(rule.get("apiGroups") or ())
        self._versions = frozenset(rule.get("apiVersions") or ())
        self._resources = [tuple(each.partition("/")[::2]) for each in rule.get("resources") or ()]
        self._scope = rule.get("scope") or _ANY
        self.names = frozenset(rule.get("resourceNames") or ())

    def covers(self, place: Place) -> bool:
        """Return True if the rule can match a request in some version, of some name."""
        return (
            self._matches_scope(place)
            and not self._operations.isdisjoint((_ANY, place.operation))
            and not self._groups.isdisjoint((_ANY, place.group))
            and any(
                resource in (_ANY, place.resource) and below in (_ANY, place.subresource)
                for resource, below in self._resources
            )
        )

    def has_version(self, version: str) -> bool:
        return not self._versions.isdisjoint((_ANY, version))

    def _matches_scope(self, place: Place) -> bool:
        return self._scope == _ANY or (self._scope == "Namespaced") is place.is_namespaced


class Criteria:
    """Rules and selectors together; without rules, all requests that the selectors match."""

    def __init__(self, document: Mapping[str, Any], *, rules: str) -> None:
        """``rules`` is the name of the field with the rules."""
        self._rules = [_Rule(rule) for rule in document.get(rules) or ()]
        self._exclusions = [_Rule(rule) for rule in document.get("excludeResourceRules") or ()]
        self._is_exact = document.get("matchPolicy", _EXACT) == _EXACT
        self._namespaces = _selector(document.get("namespaceSelector"))
        self._objects = _selector(document.get("objectSelector"))
        self._covering: dict[Place, Sequence[_Rule]] = {}

    def covers(self, place: Place) -> bool:
        """Return True if requests of a place can match."""
        if not self._rules:
            return True
        self._covering[place] = [rule for rule in self._rules if rule.covers(place)]
        return bool(self._covering[place])

    def match(self, request: Request, place: Place, *, store: Reader) -> str | None:
        """Return the version in which the request matches, or None.

        Raises:
            status.StatusError: the namespace with the labels for the selector does not exist.
        """
        if not self._chooses_object(request):
            return None
        version = request.write.version
        if self._exclusions:
            exclusions = [rule for rule in self._exclusions if rule.covers(place)]
            if self._find(exclusions, request) is not None:
                return None
        matched_version: str | None = version
        if self._rules:
            if place not in self._covering:
                self.covers(place)
            matched_version = self._find(self._covering[place], request)
        if matched_version is None or not self._chooses_namespace(request, store):
            return None
        return matched_version

    def _find(self, rules: Sequence[_Rule], request: Request) -> str | None:
        """Return the version in which one of the rules matches the request. All rules cover its place."""
        covering = [rule for rule in rules if not rule.names or request.name in rule.names]
        own = request.write.version
        if any(rule.has_version(own) for rule in covering):
            return own
        if self._is_exact:
            return None
        resource = request.write.resource
        other_versions = [version for version in resource.versions if version != own]
        matched_version = next(
            (version for rule in covering for version in other_versions if rule.has_version(version)), None
        )
        if matched_version is None and any(
            rule.has_version(version) for rule in covering for version in builtin.versions(resource.group_resource)
        ):
            # A version that is stored separately cannot be converted: a rule with this resource sees it as it is.
            return own
        return matched_version

    def _chooses_object(self, request: Request) -> bool:
        if not self._objects.requirements:
            return True
        return any(own is not None and self._objects.matches(own) for own in request.labels())

    def _chooses_namespace(self, request: Request, store: Reader) -> bool:
        if not self._namespaces.requirements:
            return True
        is_namespace = request.write.resource.group_resource == NAMESPACES
        if not request.namespace and not is_namespace:
            return True
        if is_namespace and not request.subresource and request.operation in (CREATE, UPDATE):
            own = request.labels()[0]
        else:
            own = namespace(request.namespace, store).get("metadata", {}).get("labels")
        return self._namespaces.matches(own or {})


def namespace(name: str, store: Reader) -> Mapping[str, Any]:
    """Return a namespace; a 404 if it does not exist."""
    existing = store.get(record.Key(NAMESPACES, "", name))
    if existing is None:
        raise status.not_found(namespace_kind.KIND, name)
    document: Mapping[str, Any] = existing.value
    return document


def _selector(document: Mapping[str, Any] | None) -> labels.Selector:
    # Stored selectors are valid, and present by default.
    return workload.compile_selector(document or {}) or labels.NOTHING
