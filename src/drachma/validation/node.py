"""Rules for Node and RuntimeClass."""

import ipaddress
from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, STATUS, Document, Path
from drachma.validation.podspec import resources
from drachma.values import names

_TAINTS: Final = METADATA.child("taints")
"""Path of taints in upstream's messages, although they are in the spec."""

_CIDRS: Final = SPEC.child("podCIDRs")
_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_SHOWN_TAINT: Final = (
    ("Key", "key", ""),
    ("Value", "value", ""),
    ("Effect", "effect", ""),
    ("TimeAdded", "timeAdded", None),
)


def _check_new(node: Document, at: Path) -> Errors:
    spec = node.get("spec") or {}
    yield from check_taints(spec.get("taints") or ())
    yield from _check_amounts(node.get("status") or {})
    yield from _check_networks(spec.get("podCIDRs") or ())


def _check_update(node: Document, at: Path, old_node: Document) -> Errors:
    """Check a changed node or status."""
    spec, old, status = node.get("spec") or {}, old_node.get("spec") or {}, node.get("status") or {}
    yield from _check_amounts(status)
    yield from _check_addresses(status.get("addresses") or ())
    if old.get("podCIDRs") and spec.get("podCIDRs") != old["podCIDRs"]:
        yield fielderror.forbidden(_CIDRS, 'node updates may not change podCIDR except from "" to valid')
    if old.get("providerID") and spec.get("providerID", "") != old["providerID"]:
        act = "modified" if spec.get("providerID") else "cleared"
        yield fielderror.invalid(SPEC.child("providerID"), None, f"field cannot be {act} once set")
    yield from check_taints(spec.get("taints") or ())
    if spec.get("externalID", "") != old.get("externalID", ""):
        yield fielderror.forbidden(SPEC.child("externalID"), "may not be updated")


def check_taints(taints: Sequence[Document]) -> Errors:
    """Yield the errors of the taints of a node."""
    previous = set()
    for position, taint in enumerate(taints):
        at, identity = _TAINTS.item(position), (taint.get("key", ""), taint.get("effect", ""))
        yield from _TYPES["Taint"](taint, at)
        if identity in previous:
            error = fielderror.duplicate(at, rendering.internal_fields(taint, *_SHOWN_TAINT))
            yield fielderror.replace_detail(error, "taints must be unique by key and effect pair")
        previous.add(identity)


def _taint_value(value: str, at: Path) -> Errors:
    problems = names.label_value(value)
    if problems:
        yield fielderror.invalid(at, value, ";".join(problems))


def _check_amounts(status: Document) -> Errors:
    """Check the amounts of a node; any name of a resource is allowed."""
    for field in ("capacity", "allocatable"):
        for name, text in sorted((status.get(field) or {}).items()):
            yield from resources.amount(name, text, STATUS.child(field, name))


def _check_addresses(addresses: Sequence[Document]) -> Errors:
    previous = set()
    for position, address in enumerate(addresses):
        display = rendering.internal_fields(address, ("Type", "type", ""), ("Address", "address", ""))
        if display in previous:
            yield fielderror.duplicate(STATUS.child("addresses").item(position), display)
        previous.add(display)


def _check_networks(cidrs: Sequence[str]) -> Errors:
    versions = [_version(cidr) for cidr in cidrs]
    for position, (cidr, version) in enumerate(zip(cidrs, versions, strict=True)):
        if version is None:
            yield fielderror.invalid(_CIDRS.item(position), cidr, _CIDR)
    if len(cidrs) > 1 and (len(cidrs) > 2 or len(set(versions) - {None}) < 2):
        detail = "may specify no more than one CIDR for each IP family"
        yield fielderror.invalid(_CIDRS, rendering.wire(list(cidrs)), detail)


def _version(cidr: str) -> int | None:
    """Return the IP version of a network, or None if the text is not one."""
    try:
        return ipaddress.ip_network(cidr, strict=False).version if "/" in cidr else None
    except ValueError:
        return None


# RuntimeClass

_short_name: Final = constraints.text(lambda name: names.dns1123_label(name, unit="bytes"))


_TYPES: Final = rulenotation.load("node", globals())
KINDS: Final = kindrules.read(_TYPES)
