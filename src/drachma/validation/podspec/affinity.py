"""Rules for affinity to nodes and pods, and for topology spread."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import fielderror, formats, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


# Other pods


def _check_label_keys(term: Document, at: Path) -> Errors:
    """Check keys that stand for the pod's own labels: the selector that they extend must not have them already."""
    selector = term.get("labelSelector")
    matching, mismatching = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and selector is None:
            yield fielderror.forbidden(at.child(field), "must not be specified when labelSelector is not set")
            continue
        for position, key in enumerate(keys):
            yield from formats.label_key(key, at.child(field).item(position))
    if selector is not None and matching:
        positions = {key: position for position, key in enumerate(matching)}
        previous = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in positions and key in previous:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield fielderror.invalid(at.item(positions[key]), key, detail)
            previous.add(key)
    for position, key in enumerate(matching):
        if key in mismatching:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield fielderror.invalid(at.child("matchLabelKeys").item(position), key, detail)


# Topology spread. The facts of a constraint are the constraints that follow it.


def check_spread(constraint_list: Sequence[Document], at: Path) -> Errors:
    """Yield the errors of topology spread constraints."""
    for position, constraint in enumerate(constraint_list):
        yield from TYPES["TopologySpreadConstraint"](constraint, at.item(position), constraint_list[position + 1 :])


def _check_repetition(constraint: Document, at: Path, following: Sequence[Document]) -> Errors:
    topology, action = key = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
    if any((each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) == key for each in following):
        yield fielderror.duplicate(at.child("{topologyKey, whenUnsatisfiable}"), f"{{{topology}, {action}}}")


def _check_min_domains(constraint: Document, at: Path) -> Errors:
    domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield fielderror.invalid(at.child("minDomains"), domains, detail)


TYPES: Final = rulenotation.load("podspec/affinity", globals())
