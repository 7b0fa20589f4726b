"""Rules of roles: what they allow, which of them include which, and how messages show them.

Pure: documents in, values out. A rule allows what all of its parts match; nothing forbids anything.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.values import quotation

ALL: Final = "*"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: about resources, or about paths beside them. Without ``names`` it is about objects of any name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Upstream's short form, which refusals show."""
        parts = zip(_GO_NAMES, (self.groups, self.resources, self.paths, self.names, self.verbs), strict=True)
        return "{" + ", ".join(f"{name}:{_quoted(values)}" for name, values in parts if values) + "}"


EVERYTHING: Final = (
    Rule(verbs=(ALL,), groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), paths=(ALL,)),
)
"""The rules of who may do everything."""

_GO_NAMES: Final = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")


def read(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """The rules of a stored role."""
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
    """A rule as roles and reviews have it."""
    parts = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.paths,
    }
    return {name: list(values) for name, values in parts.items() if values}


class Permissions:
    """What several rules allow together, arranged so that a question costs a few look-ups, however many there are."""

    __slots__ = ("_paths", "_resources")

    def __init__(self, rules: Sequence[Rule]) -> None:
        resources: dict[str, dict[str, list[tuple[frozenset[str], frozenset[str]]]]] = {}
        for rule in rules:
            entry = frozenset(rule.verbs), frozenset(rule.names)
            for resource, group in itertools.product(rule.resources, rule.groups):
                resources.setdefault(resource, {}).setdefault(group, []).append(entry)
        self._resources: Final = resources
        self._paths: Final = tuple((frozenset(rule.verbs), rule.paths) for rule in rules if rule.paths)

    def allow(self, verb: str, group: str, *, resource: str, subresource: str, name: str) -> bool:
        """Whether something may be done to an object or a collection, or below one."""
        full = f"{resource}/{subresource}" if subresource else resource
        if self._allow(full, verb, group, name=name) or self._allow(ALL, verb, group, name=name):
            return True
        return bool(subresource) and self._allow(f"*/{subresource}", verb, group, name=name)

    def _allow(self, resource: str, verb: str, group: str, *, name: str) -> bool:
        groups = self._resources.get(resource)
        if groups is None:
            return False
        for each in (group, ALL):
            for verbs, names in groups.get(each, ()):
                if (verb in verbs or ALL in verbs) and (not names or name in names):
                    return True
        return False

    def allow_path(self, verb: str, path: str) -> bool:
        """Whether something may be done to a path beside the resources."""
        return any(
            (verb in verbs or ALL in verbs) and any(_includes_path(each, path) for each in paths)
            for verbs, paths in self._paths
        )


def missing(owned: Sequence[Rule], granted: Sequence[Rule]) -> tuple[Rule, ...]:
    """Of what some rules allow, what others do not: rules of one verb, resource and name each."""
    same = frozenset(owned)
    others = [rule for rule in granted if rule not in same]
    return tuple(atom for rule in others for atom in _atoms(rule) if not any(_includes(each, atom) for each in owned))


def compact(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules of one resource each, those that only differ in their verbs put together."""
    together: dict[Rule, list[str]] = {}
    others: list[Rule] = []
    for rule in rules:
        if rule.paths or len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1:
            others.append(rule)
        else:
            together.setdefault(msgspec.structs.replace(rule, verbs=()), []).extend(rule.verbs)
    return (*others, *(msgspec.structs.replace(rule, verbs=tuple(verbs)) for rule, verbs in together.items()))


def _atoms(rule: Rule) -> Iterator[Rule]:
    """A rule as rules of one verb, resource and name each."""
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


def _has(values: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in values or all(value in values for value in wanted)


def _has_below(resources: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether the resources have what is wanted as that of all resources: ``*/scale``."""
    return all("/" in each and f"*/{each.partition('/')[2]}" in resources for each in wanted)


def _includes_path(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def _quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(map(quotation.quote, values)) + "]"
