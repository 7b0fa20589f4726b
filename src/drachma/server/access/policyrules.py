"""Rules of roles: matching, inclusion and printed form.

Pure: documents in, values out. A rule allows an action that all of its parts match. No rule forbids anything.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from drachma.values import quotation

ALL: Final = "*"

_SourceT = TypeVar("_SourceT")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule about resources or about non-resource paths. Without ``names`` it covers objects of any name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return upstream's short form, which refusals show."""
        parts = zip(_GO_NAMES, (self.groups, self.resources, self.paths, self.names, self.verbs), strict=True)
        return "{" + ", ".join(f"{name}:{_quote_all(values)}" for name, values in parts if values) + "}"


EVERYTHING: Final = (
    Rule(verbs=(ALL,), groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), paths=(ALL,)),
)
"""Rules that allow everything."""

_GO_NAMES: Final = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")


def read(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """Return the rules of a stored role."""
    return tuple(
        Rule(
            verbs=tuple(each.get("verbs") or ()),
            groups=tuple(each.get("apiGroups") or ()),
            resources=tuple(each.get("resources") or ()),
            names=tuple(each.get("resourceNames") or ()),
            paths=tuple(each.get("nonResourceURLs") or ()),
        )
        for each in documents or ()
    )


def write(rule: Rule) -> dict[str, list[str]]:
    """Return a rule as roles and reviews have it."""
    parts = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.paths,
    }
    return {name: list(values) for name, values in parts.items() if values}


class Permissions(Generic[_SourceT]):
    """Rules of several sources, indexed so that a question costs a few lookups, whatever their number.

    Answers are sources: the first that allows an action, or None.
    """

    __slots__ = ("_paths", "_resources")

    def __init__(self, sources: Iterable[tuple[_SourceT, Sequence[Rule]]]) -> None:
        self._resources: Final[dict[str, dict[str, list[tuple[frozenset[str], frozenset[str], _SourceT]]]]] = {}
        self._paths: Final[list[tuple[frozenset[str], tuple[str, ...], _SourceT]]] = []
        for source, rules in sources:
            for rule in rules:
                self._add(source, rule)

    def _add(self, source: _SourceT, rule: Rule) -> None:
        verbs = frozenset(rule.verbs)
        entry = verbs, frozenset(rule.names), source
        for resource, group in itertools.product(rule.resources, rule.groups):
            self._resources.setdefault(resource, {}).setdefault(group, []).append(entry)
        if rule.paths:
            self._paths.append((verbs, rule.paths, source))

    def find_resource_source(
        self, verb: str, group: str, *, resource: str, subresource: str, name: str
    ) -> _SourceT | None:
        """Return the first source that allows an action on an object, a collection or a subresource."""
        resources = self._resources
        patterns: tuple[str, ...] = (resource, ALL)
        if subresource:
            patterns = (f"{resource}/{subresource}", ALL, f"*/{subresource}")
        for each in patterns:
            groups = resources.get(each)
            if groups is None:
                continue
            for part in (group, ALL):
                for verbs, names, source in groups.get(part, ()):
                    if (verb in verbs or ALL in verbs) and (not names or name in names):
                        return source
        return None

    def find_path_source(self, verb: str, path: str) -> _SourceT | None:
        """Return the first source that allows an action on a non-resource path."""
        for verbs, paths, source in self._paths:
            if (verb in verbs or ALL in verbs) and any(_includes_path(each, path) for each in paths):
                return source
        return None


def find_missing(owned: Sequence[Rule], granted: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the granted permissions that the owned rules lack, as rules of one verb, resource and name each."""
    same = frozenset(owned)
    unmatched = [rule for rule in granted if rule not in same]
    return tuple(
        atom for rule in unmatched for atom in _atoms(rule) if not any(_includes(each, atom) for each in owned)
    )


def compact(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return rules of one resource each, with the verbs of otherwise equal rules combined."""
    together: dict[Rule, list[str]] = {}
    general: list[Rule] = []
    for rule in rules:
        if rule.paths or len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1:
            general.append(rule)
        else:
            together.setdefault(msgspec.structs.replace(rule, verbs=()), []).extend(rule.verbs)
    return (*general, *(msgspec.structs.replace(rule, verbs=tuple(verbs)) for rule, verbs in together.items()))


def _atoms(rule: Rule) -> Iterator[Rule]:
    """Split a rule into rules of one verb, resource and name each."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.names] or [()]
    for group, resource, verb, name in itertools.product(rule.groups, rule.resources, rule.verbs, names):
        yield Rule(verbs=(verb,), groups=(group,), resources=(resource,), names=name)
    for path, verb in itertools.product(rule.paths, rule.verbs):
        yield Rule(verbs=(verb,), paths=(path,))


def _includes(rule: Rule, atom: Rule) -> bool:
    return (
        _has(rule.verbs, atom.verbs)
        and _has(rule.groups, atom.groups)
        and (_has(rule.resources, atom.resources) or _has_below(rule.resources, atom.resources))
        and (not rule.names or (bool(atom.names) and atom.names[0] in rule.names))
        and all(any(_includes_path(each, path) for each in rule.paths) for path in atom.paths)
    )


def _has(values: tuple[str, ...], required: tuple[str, ...]) -> bool:
    return ALL in values or all(value in values for value in required)


def _has_below(resources: tuple[str, ...], required: tuple[str, ...]) -> bool:
    """Return True if the resources include the required subresources for all resources: ``*/scale``."""
    return all("/" in each and f"*/{each.partition('/')[2]}" in resources for each in required)


def _includes_path(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def _quote_all(values: Iterable[str]) -> str:
    return "[" + " ".join(map(quotation.quote, values)) + "]"
