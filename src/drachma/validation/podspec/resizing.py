"""Rules for resizing a pod in place: only cpu and memory of its containers and of the whole pod may change."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import ROOT, SPEC, Document

_RESIZABLE: Final = frozenset({"cpu", "memory"})
_LISTS: Final = ("containers", "initContainers")
_ONLY: Final = "only cpu and memory resources are mutable"


def prepared(spec: Document, old: Document) -> dict[str, Any]:
    """Return the stored spec with the resources and resize policies that the client sent.

    If containers are added, removed or renamed, the client's spec is returned for the rules to refuse.
    """
    if any(_names(spec, field) != _names(old, field) for field in _LISTS):
        return dict(spec)
    changed = dict(old)
    for field in _LISTS:
        if old.get(field):
            changed[field] = [_resized(new, before) for new, before in _pairs(spec, old, field)]
    if spec.get("resources"):
        changed["resources"] = spec["resources"]
    return changed


def _resized(new: Document, before: Document) -> dict[str, Any]:
    container = dict(before)
    container["resources"] = new.get("resources") or {}
    if new.get("resizePolicy"):
        container["resizePolicy"] = new["resizePolicy"]
    else:
        container.pop("resizePolicy", None)
    return container


def check_pod(metadata: Document, old: Document) -> Errors:
    """Yield an error for pods that cannot be resized; ``old`` is the stored pod."""
    if "kubernetes.io/config.mirror" in (metadata.get("annotations") or ()):
        yield fielderror.forbidden(ROOT, "static pods cannot be resized")
    elif ((old["spec"].get("os") or {}).get("name")) == "windows":
        yield fielderror.forbidden(ROOT, "windows pods cannot be resized")


def check(spec: Document, old: Document, *, qos_class: str, old_class: str) -> Errors:
    """Yield the errors of a resize of the stored pod ``old``."""
    before: Document = old["spec"]
    if qos_class != old_class:
        detail = "Pod QOS Class may not change as a result of resizing"
        yield fielderror.invalid(SPEC, rendering.named(qos_class), detail)
    if not _is_supported(old.get("status") or {}):
        yield fielderror.forbidden(SPEC, "Pod running on node without support for resize")
    order = list(_order(spec, before))
    yield from order
    if order:
        return
    for field in _LISTS:
        for position, (new, container) in enumerate(_pairs(spec, before, field)):
            at = SPEC.child(field).item(position).child("resources")
            for kind in ("requests", "limits"):
                if _amounts(container, kind).keys() - _amounts(new, kind).keys():
                    yield fielderror.forbidden(at.child(kind), f"resource {kind} cannot be removed")
    yield from _others(spec, before)


def _order(spec: Document, old: Document) -> Errors:
    for field in _LISTS:
        names, before = _names(spec, field), _names(old, field)
        if len(names) != len(before):
            yield fielderror.forbidden(SPEC.child(field), f"{field} may not be added or removed on resize")
            continue
        for position, (name, earlier) in enumerate(zip(names, before, strict=True)):
            if name != earlier:
                at = SPEC.child(field).item(position).child("name")
                yield fielderror.forbidden(at, f"{field} may not be renamed or reordered on resize")


def _others(spec: Document, old: Document) -> Errors:
    """Check that resources other than cpu and memory do not change."""
    for new, container in _pairs(spec, old, "containers"):
        if _fixed(new) != _fixed(container):
            yield fielderror.forbidden(SPEC, _ONLY)
    for position, (new, container) in enumerate(_pairs(spec, old, "initContainers")):
        at = SPEC.child("initContainers").item(position)
        if _fixed(new) != _fixed(container):
            yield fielderror.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
    if _fixed(spec) != _fixed(old):
        yield fielderror.forbidden(SPEC, _ONLY)


def _fixed(container: Document) -> tuple[Any, ...]:
    amounts = [
        {name: amount for name, amount in _amounts(container, kind).items() if name not in _RESIZABLE}
        for kind in ("requests", "limits")
    ]
    return (*amounts, (container.get("resources") or {}).get("claims"))


def _amounts(container: Document, kind: str) -> Document:
    return (container.get("resources") or {}).get(kind) or {}


def _names(spec: Document, field: str) -> Sequence[str]:
    return [each.get("name", "") for each in spec.get(field) or ()]


def _pairs(spec: Document, old: Document, field: str) -> Iterator[tuple[Document, Document]]:
    return zip(spec.get(field) or (), old.get(field) or (), strict=True)


def _is_supported(status: Document) -> bool:
    """Return True unless the node of a running pod does not report the resources of containers."""
    for each in status.get("containerStatuses") or ():
        if (each.get("state") or {}).get("running") is not None:
            return each.get("resources") is not None
    return True
