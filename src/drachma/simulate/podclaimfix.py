"""Fixes: the smallest change that makes a pod's claims fit, as a JSON patch of the object that holds the requests.

Specs of claims and templates are immutable, so the command replaces the object. Claims are made from a template when a
pod is created, so the command creates the pod again too. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from drachma.allocator.explanation import report, wording
from drachma.api import pod, resourceclaim
from drachma.claims import ownership, podclaims


class Fix(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A change of one object after which the pod fits."""

    text: str
    kind: str = ""
    """Kind of the object to change; empty if the change is no change of an object."""
    namespace: str = ""
    name: str = ""
    patch: tuple[dict[str, Any], ...] = ()
    """JSON patch (RFC 6902) of the object."""
    command: str = ""
    """Command that makes the change."""


def smallest(changes: Sequence[report.Change]) -> report.Change | None:
    """Return the change that takes least away from the user, of the smallest changes of several nodes."""
    kinds = list(report.ChangeKind)
    return min(changes, key=lambda each: (each.size, kinds.index(each.kind)), default=None)


def build(change: report.Change, claims: Sequence[resourceclaim.ResourceClaim], user: pod.Pod) -> Fix:
    """Return the fix for a change that an explanation of these claims of a pod proposes."""
    text = wording.change(change, name_claim=len(claims) > 1)
    if change.kind is report.ChangeKind.DROP_CLASS_SELECTOR:
        steps: tuple[dict[str, Any], ...] = ({"op": "remove", "path": f"/spec/selectors/{change.number}"},)
        command = f"kubectl patch deviceclass {change.subject} --type=json -p {_quoted(steps)}"
        return Fix(text=text, kind="DeviceClass", name=change.subject, patch=steps, command=command)
    if change.kind is report.ChangeKind.FREE_CLAIM:
        return Fix(text=text)
    claim = next((each for each in claims if f"{each.metadata.namespace}/{each.metadata.name}" == change.subject), None)
    holder = _holder(claim, user) if claim is not None else None
    if claim is None or holder is None:
        return Fix(text=text)
    kind, name, prefix = holder
    steps = tuple({**step, "path": f"{prefix}{step['path']}"} for step in _steps(change, claim))
    if not steps:
        return Fix(text=text)
    namespace = claim.metadata.namespace
    plural, where = kind.lower(), f"-n {namespace} "
    command = (
        f"kubectl get {plural} {where}{name} -o json"
        f" | kubectl patch --local -f - --type=json -p {_quoted(steps)} -o json"
        f" | kubectl replace --force -f -"
    )
    if kind == "ResourceClaimTemplate":
        command = f"{command} && {_recreate(user)}"
    return Fix(text=text, kind=kind, namespace=namespace, name=name, patch=steps, command=command)


def _recreate(user: pod.Pod) -> str:
    """Return the command that creates a pod again. A controller does that itself."""
    name, where = user.metadata.name, f"-n {user.metadata.namespace} "
    if ownership.controller_of(user) is not None:
        return f"kubectl delete pod {where}{name}"
    return f"kubectl get pod {where}{name} -o json | kubectl replace --force -f -"


def _holder(claim: resourceclaim.ResourceClaim, user: pod.Pod) -> tuple[str, str, str] | None:
    """Return kind and name of the object with the requests of a claim, and the path of the claim's spec in it."""
    for entry, reference in podclaims.named(user):
        if reference.name == claim.metadata.name:
            if entry.resource_claim_template_name:
                return "ResourceClaimTemplate", str(entry.resource_claim_template_name), "/spec/spec"
            return "ResourceClaim", claim.metadata.name, "/spec"
    return None


def _steps(change: report.Change, claim: resourceclaim.ResourceClaim) -> tuple[dict[str, Any], ...]:
    """Return the steps of a JSON patch of the claim's spec."""
    if change.kind is report.ChangeKind.DROP_CONSTRAINT:
        return ({"op": "remove", "path": f"/devices/constraints/{change.number}"},)
    place = _place(change.request, claim)
    if place is None:
        return ()
    path, part = place
    match change.kind:
        case report.ChangeKind.LOWER_COUNT:
            return ({"op": "replace", "path": f"{path}/count", "value": int(change.after)},)
        case report.ChangeKind.LOWER_CAPACITY:
            amount, _, name = change.after.partition(" ")
            escaped = name.replace("~", "~0").replace("/", "~1")
            return ({"op": "replace", "path": f"{path}/capacity/requests/{escaped}", "value": amount},)
        case report.ChangeKind.DROP_SELECTOR:
            return ({"op": "remove", "path": f"{path}/selectors/{change.number}"},)
        case report.ChangeKind.DROP_REQUEST:
            return ({"op": "remove", "path": path.removesuffix("/exactly")},)
        case report.ChangeKind.TOLERATE:
            toleration = _toleration(change.after)
            if part.tolerations:
                return ({"op": "add", "path": f"{path}/tolerations/-", "value": toleration},)
            return ({"op": "add", "path": f"{path}/tolerations", "value": [toleration]},)
        case _:
            return ()


def _place(
    request: str, claim: resourceclaim.ResourceClaim
) -> tuple[str, resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest] | None:
    name, _, subrequest = request.partition("/")
    for number, each in enumerate(claim.spec.devices.requests):
        if each.name != name:
            continue
        if not subrequest and each.exactly is not None:
            return f"/devices/requests/{number}/exactly", each.exactly
        for position, alternative in enumerate(each.first_available):
            if alternative.name == subrequest:
                return f"/devices/requests/{number}/firstAvailable/{position}", alternative
    return None


def _toleration(taint: str) -> dict[str, str]:
    """Return the toleration of a taint, written ``key=value:effect`` or ``key:effect``."""
    key, _, effect = taint.rpartition(":")
    key, _, value = key.partition("=")
    if not value:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


def _quoted(steps: Sequence[dict[str, Any]]) -> str:
    return shlex.quote(msgspec.json.encode(list(steps)).decode())
