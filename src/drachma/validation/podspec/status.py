"""Rules for a change of a pod's status that are not about claims: conditions, addresses, states of containers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import STATUS, Path
from drachma.validation.podspec import choices

_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_NOMINATED: Final = STATUS.child("nominatedNodeName")


def check(status: Mapping[str, Any], old: Mapping[str, Any], *, spec: Mapping[str, Any]) -> Errors:
    """What comes before the rules about claims; ``spec`` is that of the pod."""
    for position, condition in enumerate(status.get("conditions") or ()):
        yield from _condition(condition, STATUS.child("conditions").item(position))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != old.get("nominatedNodeName", ""):
        yield from formats.node_name(nominated, _NOMINATED)
        if spec.get("nodeName"):
            yield fielderror.forbidden(_NOMINATED, "may not be set on pods that are already bound to a node")
    yield from _generation(status, STATUS)
    quality = status.get("qosClass", "")
    if quality != old.get("qosClass", ""):
        yield fielderror.invalid(STATUS.child("qosClass"), rendering.named(quality), metadata.IMMUTABLE)
    for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        yield from _states(status, old, field=field, containers=spec.get(containers) or (), spec=spec)
    yield from _states(status, old, field="ephemeralContainerStatuses", containers=(), spec=None)


def check_addresses(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What comes after the rules about claims."""
    known = {each.get("ip", "") for each in old.get("podIPs") or ()}
    at, own, single = STATUS.child("podIPs"), status.get("podIPs") or (), status.get("podIP", "")
    yield from _addresses(own, at, known=known)
    if bool(single) != bool(own):
        shown = rendering.wire([{"IP": each.get("ip", "")} for each in own] or None)
        yield fielderror.invalid(at, shown, "podIP and podIPs must either both be set or both be unset")
    elif own and own[0].get("ip", "") != single:
        yield fielderror.invalid(at.item(0).child("ip"), own[0].get("ip", ""), "must be equal to `podIP`")
    hosts, at = status.get("hostIPs") or (), STATUS.child("hostIPs")
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        yield fielderror.invalid(at.item(0).child("ip"), hosts[0].get("ip", ""), "must be equal to `hostIP`")
    yield from _addresses(hosts, at, known={each.get("ip", "") for each in old.get("hostIPs") or ()})


def _addresses(addresses: Sequence[Mapping[str, Any]], at: Path, *, known: set[str]) -> Errors:
    for position, each in enumerate(addresses):
        if each.get("ip", "") not in known:
            yield from choices.address(each.get("ip", ""), at.item(position))
    if len(addresses) < 2:
        return
    parsed = [formats.lenient_address(each.get("ip", "")) for each in addresses]
    families = {each.version for each in parsed if each is not None}
    if None in parsed:
        bad = next(each.get("ip", "") for each, address in zip(addresses, parsed, strict=True) if address is None)
        index = next(index for index, address in enumerate(parsed) if address is None)
        detail = f"failed to check for dual stack with error:invalid IP[{index}]: <nil> ({bad})"
        yield fielderror.internal(at, detail)
    if len(families) < 2 or len(addresses) > 2:
        shown = rendering.wire([{"IP": each.get("ip", "")} for each in addresses])
        yield fielderror.invalid(at, shown, "may specify no more than one IP for each IP family")


def _condition(condition: Mapping[str, Any], at: Path) -> Found:
    found = list(_generation(condition, at))
    kind = condition.get("type", "")
    return found if kind in _SYSTEM_CONDITIONS else [*found, *choices.qualified_name(kind, at.child("Type"))]


def _generation(part: Mapping[str, Any], at: Path) -> Found:
    generation = part.get("observedGeneration", 0)
    if generation >= 0:
        return ()
    return [fielderror.invalid(at.child("observedGeneration"), generation, "must be a non-negative integer")]


def _states(
    status: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    field: str,
    containers: Sequence[Mapping[str, Any]],
    spec: Mapping[str, Any] | None,
) -> Errors:
    """Containers that have ended do not run again unless their policy says so."""
    now = {each.get("name", ""): each for each in status.get(field) or ()}
    for position, before in enumerate(old.get(field) or ()):
        ended, current = (before.get("state") or {}).get("terminated"), now.get(before.get("name", ""))
        if ended is None or current is None or (current.get("state") or {}).get("terminated") is not None:
            continue
        own = next((each for each in containers if each.get("name") == before.get("name")), None)
        if spec is None or own is None or not _restarts(own, spec, code=ended.get("exitCode", 0)):
            at = STATUS.child(field).item(position).child("state")
            yield fielderror.forbidden(at, "may not be transitioned to non-terminated state")


def _restarts(container: Mapping[str, Any], spec: Mapping[str, Any], *, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        is_listed = code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and is_listed is (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)
