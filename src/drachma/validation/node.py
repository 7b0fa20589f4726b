"""Rules for nodes: taints, amounts, addresses, and what kubelet or a cloud may set once."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, STATUS
from drachma.validation.podspec import resources, tolerations
from drachma.values import names

_TAINTS: Final = METADATA.child("taints")
"""Where upstream says that taints are, although they are in the spec."""
_CIDRS: Final = SPEC.child("podCIDRs")
_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def check(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Errors:
    """A new node."""
    yield from check_taints(spec.get("taints") or ())
    yield from check_amounts(status)
    yield from _cidrs(spec.get("podCIDRs") or ())


def check_update(spec: Mapping[str, Any], status: Mapping[str, Any], *, old: Mapping[str, Any]) -> Errors:
    """A changed node or status of one; ``old`` is the spec that is stored."""
    yield from check_amounts(status)
    seen = set()
    for position, address in enumerate(status.get("addresses") or ()):
        identity = (address.get("type", ""), address.get("address", ""))
        if identity in seen:
            shown = rendering.Rendered('{{"Type":{},"Address":{}}}'.format(*map(rendering.named, identity)))
            yield fielderror.duplicate(STATUS.child("addresses").item(position), shown)
        seen.add(identity)
    if old.get("podCIDRs") and spec.get("podCIDRs") != old["podCIDRs"]:
        yield fielderror.forbidden(_CIDRS, 'node updates may not change podCIDR except from "" to valid')
    if old.get("providerID") and spec.get("providerID", "") != old["providerID"]:
        act = "modified" if spec.get("providerID") else "cleared"
        yield fielderror.invalid(SPEC.child("providerID"), None, f"field cannot be {act} once set")
    yield from check_taints(spec.get("taints") or ())
    if spec.get("externalID", "") != old.get("externalID", ""):
        yield fielderror.forbidden(SPEC.child("externalID"), "may not be updated")


def check_taints(taints: Sequence[Mapping[str, Any]]) -> Errors:
    """What keeps pods away from a node."""
    seen = set()
    for position, taint in enumerate(taints):
        at, key, effect = _TAINTS.item(position), taint.get("key", ""), taint.get("effect", "")
        yield from formats.label_key(key, at.child("key"))
        problems = names.label_value(taint.get("value", ""))
        if problems:
            yield fielderror.invalid(at.child("value"), taint.get("value", ""), ";".join(problems))
        if effect:
            yield from tolerations.check_effect(effect, at.child("effect"))
        else:
            yield fielderror.required(at.child("effect"))
        if (key, effect) in seen:
            duplicate = fielderror.duplicate(at, _taint(taint))
            yield fielderror.with_detail(duplicate, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def check_amounts(status: Mapping[str, Any]) -> Errors:
    """How much a node has, and has for pods; the names of resources are not looked at."""
    for field in ("capacity", "allocatable"):
        for name, text in sorted((status.get(field) or {}).items()):
            yield from resources.amount(name, text, STATUS.child(field, name))


def _taint(taint: Mapping[str, Any]) -> rendering.Rendered:
    fields = ("Key", "key", ""), ("Value", "value", ""), ("Effect", "effect", ""), ("TimeAdded", "timeAdded", None)
    parts = (f'"{go}":{rendering.wire(taint.get(wire, empty))}' for go, wire, empty in fields)
    return rendering.Rendered("{" + ",".join(parts) + "}")


def _cidrs(cidrs: Sequence[str]) -> Errors:
    parsed = [_network(cidr) for cidr in cidrs]
    for position, (text, network) in enumerate(zip(cidrs, parsed, strict=True)):
        if network is None:
            yield fielderror.invalid(_CIDRS.item(position), text, _CIDR)
    if len(cidrs) > 1 and (len(cidrs) > 2 or len({each.version for each in parsed if each is not None}) < 2):
        detail = "may specify no more than one CIDR for each IP family"
        yield fielderror.invalid(_CIDRS, rendering.wire(list(cidrs)), detail)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
