"""Rules for the resource claims of a pod and what its containers use of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path


def check(claims: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """The claims of a pod: a name of its own for each, and one way to find it."""
    seen = set()
    for position, claim in enumerate(claims):
        path, name = at.item(position), claim.get("name", "")
        if not name:
            yield fielderror.required(path.child("name"))
        elif name in seen:
            yield fielderror.duplicate(path.child("name"), name)
        else:
            yield from formats.short_name(name, path.child("name"))
            seen.add(name)
        by_name, by_template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if by_name is not None and by_template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield fielderror.invalid(path, _shown(claim), detail)
        if by_name is None and by_template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield fielderror.invalid(path, _shown(claim), detail)
        if by_name is not None:
            yield from formats.node_name(by_name, path.child("resourceClaimName"))
        if by_template is not None:
            yield from formats.node_name(by_template, path.child("resourceClaimTemplateName"))


def names_of(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names that containers can refer to, sorted."""
    return sorted({claim["name"] for claim in claims if claim.get("name")})


def check_use(claims: Sequence[Mapping[str, Any]], at: Path, *, known: Sequence[str]) -> Errors:
    """A container's claims: each claim whole, or some of its requests, and nothing twice."""
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        path, name, request = at.item(position), claim.get("name", ""), claim.get("request", "")
        if not name:
            yield fielderror.required(path)
            continue
        if name in seen:
            yield fielderror.duplicate(path, name)
        else:
            key = name
            if request:
                yield from formats.short_name(request, path.child("request"))
                key = f"{name}/{request}"
            if key in seen:
                yield fielderror.duplicate(path, key)
            elif not request:
                overlaps = sum(other.startswith(f"{name}/") for other in seen)
                yield from (fielderror.duplicate(path, name) for _ in range(overlaps))
            seen.add(key)
        if name not in known:
            choice = f": {', '.join(known)}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{choice}"
            yield fielderror.not_found(path, name, detail)


def _shown(claim: Mapping[str, Any]) -> rendering.Rendered:
    fields = (("Name", "name"), ("ResourceClaimName", "resourceClaimName"))
    shown = {go: claim.get(wire, "" if go == "Name" else None) for go, wire in fields}
    return rendering.wire({**shown, "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName")})
