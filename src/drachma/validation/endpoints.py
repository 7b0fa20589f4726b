"""Rules for endpoints."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names

_SUBSETS: Final = Path("subsets")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def check(subsets: Sequence[Mapping[str, Any]]) -> Errors:
    """The addresses of a service and their ports."""
    for position, subset in enumerate(subsets):
        at = _SUBSETS.item(position)
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield fielderror.required(at, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for index, address in enumerate(subset.get(field) or ()):
                yield from _address(address, at.child(field).item(index))
        ports = subset.get("ports") or ()
        for index, port in enumerate(ports):
            yield from _port(port, at.child("ports").item(index), is_named=len(ports) > 1)


def check_reachable(text: str, at: Path) -> Errors:
    """An address that others than the machine itself can reach."""
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


def _address(address: Mapping[str, Any], at: Path) -> Errors:
    text = address.get("ip", "")
    yield from choices.address(text, at.child("ip"))
    if address.get("hostname"):
        yield from formats.short_name(address["hostname"], at.child("hostname"))
    node = address.get("nodeName")
    if node is not None:
        yield from fielderror.problems(at.child("nodeName"), node, names.dns1123_subdomain(node))
    yield from check_reachable(text, at.child("ip"))


def _port(port: Mapping[str, Any], at: Path, *, is_named: bool) -> Errors:
    name = port.get("name", "")
    if is_named and not name:
        yield fielderror.required(at.child("name"))
    elif name:
        yield from formats.short_name(name, at.child("name"))
    yield from choices.port(port.get("port", 0), at.child("port"))
    protocol = port.get("protocol", "")
    if not protocol:
        yield fielderror.required(at.child("protocol"))
    elif protocol not in _PROTOCOLS:
        yield fielderror.not_supported(at.child("protocol"), rendering.named(protocol), _PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from choices.qualified_name(port["appProtocol"], at.child("appProtocol"))
