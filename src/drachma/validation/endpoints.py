"""Rules for Endpoints and EndpointSlice."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final

from drachma.validation import (
    collection,
    constraints,
    fielderror,
    formats,
    kindrules,
    rulecompiler,
    rulenotation,
    typerules,
)
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import names

_MOST_ENDPOINTS: Final = 1000
_MOST_PORTS: Final = 20000


# Endpoints


def _check_ports(subset: Document, at: Path) -> Errors:
    ports = subset.get("ports") or ()
    for position, port in enumerate(ports):
        place = at.child("ports").item(position)
        if len(ports) > 1 and not port.get("name"):
            yield fielderror.required(place.child("name"))
        yield from _TYPES["EndpointPort"](port, place)


def reachable_address(text: str, at: Path) -> Errors:
    """Check that other machines can reach an address."""
    address = formats.lenient_address(text)
    if address is None:
        yield fielderror.invalid(at, text, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield fielderror.invalid(at, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield fielderror.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield fielderror.invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(address.packed):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield fielderror.invalid(at, text, detail)


def _is_link_local_multicast(packed: bytes) -> bool:
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


# EndpointSlice. The facts of its endpoints are the type of addresses.


def _check_endpoints(content: Document, at: Path) -> Errors:
    endpoints, place = content.get("endpoints") or (), at.child("endpoints")
    yield from _ENDPOINTS(endpoints, place, content.get("addressType", ""))


def _slice_address(address: str, at: Path, kind: str) -> Errors:
    if kind == "FQDN":
        yield from constraints.dns_subdomain(address, at)
        return
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        yield fielderror.invalid(at, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if kind in ("IPv4", "IPv6") and kind != f"IPv{version}":
        yield fielderror.invalid(at, address, f"must be an {kind} address")


def _hints(problems: Callable[[str], Sequence[str]]) -> rulecompiler.Rule:
    """Return the rule of a list of hints, in which no name is repeated."""

    def rule(hints: Sequence[Document], at: Path) -> Errors:
        for place, _, name, is_repeated in collection.walk_items(hints, at):
            if is_repeated:
                yield fielderror.duplicate(place.child("name"), name)
            else:
                yield from fielderror.problems(place.child("name"), name, problems(name))

    return rule


def _slice_ports(ports: Sequence[Document], at: Path) -> Errors:
    if len(ports) > _MOST_PORTS:
        yield fielderror.too_many(at, len(ports), _MOST_PORTS)
        return
    for place, port, name, is_repeated in collection.walk_items(ports, at):
        if name:
            yield from constraints.dns_label(name, place.child("name"))
        if is_repeated:
            yield fielderror.duplicate(place.child("name"), name)
        yield from _TYPES["SlicePort"](port, place)


_zone_names: Final = _hints(names.label_value)
_node_names: Final = _hints(names.dns1123_subdomain)
_TYPES: Final = rulenotation.load("endpoints", globals())
_ENDPOINTS: Final = typerules.Each(_TYPES["Endpoint"], limit=_MOST_ENDPOINTS)
KINDS: Final = kindrules.read(_TYPES)
