"""Rules for updates of the spec of a pod."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, internalform, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import affinity, containers, pod, tolerations
from drachma.values import quotation

UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)

_LONGEST_DEADLINE: Final = 2**31 - 1
_CHANGEABLE: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
_SPEC_TYPE: Final = "PodSpec"
_EPHEMERAL_TYPE: Final = "EphemeralContainer"


def check(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Yield the errors of a changed pod spec; both specs are in normal form."""
    for field in ("containers", "initContainers"):
        new, before = spec.get(field) or (), old.get(field) or ()
        if len(new) != len(before):
            yield fielderror.forbidden(SPEC.child(field), "pod updates may not add or remove containers")
            return
        for position, container in enumerate(new):
            yield from _image(container, SPEC.child(field).item(position))
    deadline = _deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    if deadline is not None:
        yield deadline
        if spec.get("activeDeadlineSeconds") is not None:
            return
    at, new_tolerations = SPEC.child("tolerations"), spec.get("tolerations") or ()
    yield from tolerations.check_only_added(new_tolerations, old.get("tolerations") or (), at=at)
    yield from _gates(spec.get("schedulingGates") or (), old.get("schedulingGates") or ())
    if spec == old:
        return
    restored = _restored(spec, old)
    if old.get("schedulingGates"):
        yield from _steering(restored, old)
    if restored != old:
        yield fielderror.forbidden(SPEC, f"{UPDATABLE}\n{internalform.diff(old, restored, _SPEC_TYPE)}")


def _image(container: Mapping[str, Any], at: Path) -> Errors:
    if not container.get("image"):
        yield fielderror.required(at.child("image"))
    yield from containers.check_image(container, at)


def _deadline(new: int | None, old: int | None) -> fielderror.FieldError | None:
    at = SPEC.child("activeDeadlineSeconds")
    if new is None:
        if old is None:
            return None
        return fielderror.invalid(at, None, "must not update from a positive integer to nil value")
    if not 0 <= new <= _LONGEST_DEADLINE:
        return fielderror.invalid(at, new, f"must be between 0 and {_LONGEST_DEADLINE}, inclusive")
    if old is not None and old < new:
        return fielderror.invalid(at, new, "must be less than or equal to previous value")
    return None


def _gates(gates: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]]) -> Errors:
    """Check that scheduling gates are only removed."""
    old_names = {gate.get("name", "") for gate in old}
    for position, gate in enumerate(gates):
        name = gate.get("name", "")
        if name not in old_names:
            at = SPEC.child("schedulingGates").item(position).child("name")
            yield fielderror.forbidden(at, f"only deletion is allowed, but found new scheduling gate '{name}'")


def _steering(spec: dict[str, Any], old: Mapping[str, Any]) -> Errors:
    """Check changes of node selector and affinity of a gated pod, and restore both in the spec."""
    selector, before = spec.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield fielderror.invalid(SPEC.child("nodeSelector"), rendering.wire(selector or None), detail)
    spec.pop("nodeSelector", None)
    if before:
        spec["nodeSelector"] = before
    affinity_document, old_affinity = spec.get("affinity"), old.get("affinity")
    nodes, nodes_before = (affinity_document or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if nodes == nodes_before:
        return
    yield from _node_affinity(nodes or {}, nodes_before or {})
    other_affinity = {field: value for field, value in (affinity_document or {}).items() if field != "nodeAffinity"}
    if nodes_before is not None:
        spec["affinity"] = {**other_affinity, "nodeAffinity": nodes_before}
    elif old_affinity is None and not other_affinity:
        spec.pop("affinity", None)
    else:
        spec["affinity"] = other_affinity


def _node_affinity(new: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    terms = (old.get(affinity.REQUIRED) or {}).get("nodeSelectorTerms") or []
    new_terms = (new.get(affinity.REQUIRED) or {}).get("nodeSelectorTerms") or []
    at = SPEC.child("affinity", "nodeAffinity", affinity.REQUIRED, "nodeSelectorTerms")
    if terms and len(terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield fielderror.invalid(at, rendering.wire([_term(each) for each in new_terms] or None), detail)
        return
    for position, term in enumerate(terms):
        if not _only_adds(new_terms[position], term):
            detail = "only additions are allowed (no mutations or deletions)"
            yield fielderror.invalid(at.item(position), rendering.wire(_term(new_terms[position])), detail)


def _only_adds(term: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    return all((term.get(field) or [])[: len(old.get(field) or [])] == (old.get(field) or []) for field in fields)


def _term(term: Mapping[str, Any]) -> dict[str, Any]:
    """Return a term in the form of upstream's internal types."""
    names = (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
    return {go: [_requirement(each) for each in term[wire]] if term.get(wire) else None for go, wire in names}


def _requirement(requirement: Mapping[str, Any]) -> dict[str, Any]:
    fields = (("Key", "key", ""), ("Operator", "operator", ""), ("Values", "values", None))
    return {go: requirement.get(wire, empty) for go, wire, empty in fields}


def _restored(spec: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with the old values of the fields that updates may change."""
    restored = {field: value for field, value in spec.items() if field not in _CHANGEABLE}
    restored.update({field: old[field] for field in _CHANGEABLE if field in old})
    for field in ("containers", "initContainers"):
        if spec.get(field):
            restored[field] = [
                _with_image(container, before.get("image"))
                for container, before in zip(spec[field], old[field], strict=True)
            ]
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        restored["terminationGracePeriodSeconds"] = grace
    return restored


def _with_image(container: Mapping[str, Any], image: str | None) -> dict[str, Any]:
    other_fields = {field: value for field, value in container.items() if field != "image"}
    return other_fields if image is None else {**other_fields, "image": image}


def check_ephemeral_containers(
    spec: Mapping[str, Any], old: Mapping[str, Any], annotations: Mapping[str, str]
) -> Errors:
    """Yield the errors of an update of ephemeral containers, which can only be added."""
    if pod.MIRROR_ANNOTATION in annotations:
        yield fielderror.forbidden(Path(""), "static pods do not support ephemeral containers")
        return
    at = SPEC.child("ephemeralContainers")
    current = {each.get("name"): each for each in spec.get("ephemeralContainers") or ()}
    for before in old.get("ephemeralContainers") or ():
        prefix = f"existing ephemeral containers {quotation.quote(before.get('name', ''))} may not be"
        if before.get("name") not in current:
            yield fielderror.forbidden(at, f"{prefix} removed\n")
        elif current[before.get("name")] != before:
            change = internalform.diff(before, current[before.get("name")], _EPHEMERAL_TYPE)
            yield fielderror.forbidden(at, f"{prefix} changed\n{change}")
