"""Label keys: selectors that take values from a pod's own labels, by ``matchLabelKeys`` and ``mismatchLabelKeys``.

A new pod's selectors are extended by the values, so that later readers can ignore the keys.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from drachma.server.kinds.document import Document

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_SPREAD: Final = "topologySpreadConstraints"


def merge_label_keys(spec: Document, labels: Mapping[str, str]) -> Document:
    """Return the spec with selectors extended by label keys, or the same object if there are none."""
    changed = dict(spec)
    if any(each.get("matchLabelKeys") for each in spec.get(_SPREAD) or ()):
        changed[_SPREAD] = [_merge(each, labels) for each in spec[_SPREAD]]
    affinity = spec.get("affinity") or {}
    for name in _AFFINITIES:
        rules = affinity.get(name)
        if rules and any(each.get("matchLabelKeys") or each.get("mismatchLabelKeys") for each in _terms(rules)):
            changed["affinity"] = {**changed["affinity"], name: _merge_rules(rules, labels)}
    return changed if changed != spec else spec


def _terms(rules: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from rules.get(_REQUIRED) or ()
    for preference in rules.get(_PREFERRED) or ():
        yield preference.get("podAffinityTerm") or {}


def _merge_rules(rules: Mapping[str, Any], labels: Mapping[str, str]) -> Document:
    changed = dict(rules)
    if rules.get(_REQUIRED):
        changed[_REQUIRED] = [_merge(term, labels) for term in rules[_REQUIRED]]
    if rules.get(_PREFERRED):
        changed[_PREFERRED] = [
            {**preference, "podAffinityTerm": _merge(preference.get("podAffinityTerm") or {}, labels)}
            for preference in rules[_PREFERRED]
        ]
    return changed


def _merge(term: Mapping[str, Any], labels: Mapping[str, str]) -> Document:
    """Return a term or constraint with its selector extended; a term without a selector matches no pod and stays."""
    selector = term.get("labelSelector")
    if selector is None:
        return dict(term)
    added = [
        *_expressions(term.get("matchLabelKeys") or (), "In", labels),
        *_expressions(term.get("mismatchLabelKeys") or (), "NotIn", labels),
    ]
    if not added:
        return dict(term)
    return {
        **term,
        "labelSelector": {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]},
    }


def _expressions(keys: Sequence[str], operator: str, labels: Mapping[str, str]) -> Iterator[Document]:
    for key in keys:
        if key in labels:
            yield {"key": key, "operator": operator, "values": [labels[key]]}
