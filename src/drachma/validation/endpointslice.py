"""Rules for slices of endpoints."""

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS: Final = 1000
_MOST_PORTS: Final = 20000
_MOST_ADDRESSES: Final = 100


def check(content: Mapping[str, Any]) -> Errors:
    """A slice by itself."""
    kind = content.get("addressType", "")
    if not kind:
        yield fielderror.required(Path("addressType"))
    elif kind not in _TYPES:
        yield fielderror.not_supported(Path("addressType"), rendering.named(kind), _TYPES)
    endpoints, ports = content.get("endpoints") or (), content.get("ports") or ()
    if len(endpoints) > _MOST_ENDPOINTS:
        yield fielderror.too_many(Path("endpoints"), len(endpoints), _MOST_ENDPOINTS)
    else:
        for position, endpoint in enumerate(endpoints):
            yield from _endpoint(endpoint, kind, Path("endpoints").item(position))
    if len(ports) > _MOST_PORTS:
        yield fielderror.too_many(Path("ports"), len(ports), _MOST_PORTS)
    else:
        yield from _ports(ports)


def check_update(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What kind of addresses a slice has is decided once."""
    kind = content.get("addressType", "")
    if kind != old.get("addressType", ""):
        yield fielderror.invalid(Path("addressType"), rendering.named(kind), metadata.IMMUTABLE)


def _endpoint(endpoint: Mapping[str, Any], kind: str, at: Path) -> Errors:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield fielderror.required(at.child("addresses"))
    elif len(addresses) > _MOST_ADDRESSES:
        yield fielderror.too_many(at.child("addresses"), len(addresses), _MOST_ADDRESSES)
    for position, address in enumerate(addresses):
        yield from _address(address, kind, at.child("addresses").item(position))
    for field in ("nodeName", "hostname"):
        name = endpoint.get(field)
        if name is not None:
            rule = names.dns1123_label if field == "hostname" else names.dns1123_subdomain
            yield from fielderror.problems(at.child(field), name, rule(name))
    yield from _hints(endpoint.get("hints") or {}, at.child("hints"))


def _hints(hints: Mapping[str, Any], at: Path) -> Errors:
    """For whom an endpoint is near, each once."""
    for field, rule in (("forZones", names.label_value), ("forNodes", names.dns1123_subdomain)):
        seen: set[str] = set()
        for position, each in enumerate(hints.get(field) or ()):
            name, place = each.get("name", ""), at.child(field).item(position).child("name")
            if name in seen:
                yield fielderror.duplicate(place, name)
            else:
                yield from fielderror.problems(place, name, rule(name))
            seen.add(name)


def _address(address: str, kind: str, at: Path) -> Errors:
    if kind == "FQDN":
        yield from fielderror.problems(at, address, names.dns1123_subdomain(address))
        return
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        yield fielderror.invalid(at, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if kind == "IPv4" and found.version != 4:
        yield fielderror.invalid(at, address, "must be an IPv4 address")
    elif kind == "IPv6" and found.version != 6:
        yield fielderror.invalid(at, address, "must be an IPv6 address")


def _ports(ports: Any) -> Errors:
    seen: set[str] = set()
    for position, port in enumerate(ports):
        at, name = Path("ports").item(position), port.get("name") or ""
        if name:
            yield from fielderror.problems(at.child("name"), name, names.dns1123_label(name))
        if name in seen:
            yield fielderror.duplicate(at.child("name"), name)
        seen.add(name)
        if port.get("protocol") not in _PROTOCOLS:
            protocol = rendering.named(port.get("protocol") or "")
            yield fielderror.not_supported(at.child("protocol"), protocol, _PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from choices.qualified_name(port["appProtocol"], at.child("appProtocol"))
