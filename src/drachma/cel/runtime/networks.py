"""IP addresses and prefixes: ``ip("10.0.0.1")``, ``cidr("10.0.0.0/8")`` and their functions.

Called through ``library``. Texts are read with the rules and messages of upstream's parser: no zones, no leading zeros,
no IPv4 written as IPv6.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from drachma.cel.runtime import faults, values
from drachma.values import quotation

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")


class IP:
    """An address of either family, without a zone."""

    __slots__ = ("number", "version")

    def __init__(self, number: int, version: int) -> None:
        self.number = number
        self.version = version

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IP):
            return NotImplemented
        return self.number == other.number and self.version == other.version

    def __hash__(self) -> int:
        return hash((self.version, self.number))

    def __str__(self) -> str:
        if self.version == 4:
            return str(ipaddress.IPv4Address(self.number))
        return str(ipaddress.IPv6Address(self.number))

    @property
    def bits(self) -> int:
        """32 or 128."""
        return 32 if self.version == 4 else 128


class CIDR:
    """An address and the length of its prefix; the bits after the prefix are kept."""

    __slots__ = ("address", "length")

    def __init__(self, address: IP, length: int) -> None:
        self.address = address
        self.length = length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CIDR):
            return NotImplemented
        return self.address == other.address and self.length == other.length

    def __hash__(self) -> int:
        return hash((self.address, self.length))

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def network(self, length: int) -> int:
        """Return the first ``length`` bits of the address as a number."""
        return self.address.number >> (self.address.bits - length)


def parse_ip(text: str) -> IP:
    """Return the address spelled by ``text``. Raises Fault with upstream's message."""
    try:
        address, zone = _parse_address(text)
    except ValueError as error:
        raise faults.Fault(
            f"IP Address {quotation.quote(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise faults.Fault(f"IP address {quotation.quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise faults.Fault(f"IPv4-mapped IPv6 address {quotation.quote(text)} is not allowed")
    return address


def parse_cidr(text: str) -> CIDR:
    """Return the prefix spelled by ``text``. Raises Fault with upstream's message."""
    prefix = "network address parse error during conversion from string: "
    try:
        result = _parse_prefix(text)
    except ValueError as error:
        raise faults.Fault(f"{prefix}{prefix}netip.ParsePrefix({quotation.quote(text)}): {error}") from None
    if _is_mapped(result.address):
        raise faults.Fault(f"{prefix}IPv4-mapped IPv6 address {quotation.quote(text)} is not allowed")
    return result


def _is_mapped(address: IP) -> bool:
    return address.version == 6 and address.number >> 32 == 0xFFFF


def _parse_prefix(text: str) -> CIDR:
    head, slash, tail = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address, zone = _parse_address(head)
    if zone:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not (tail and all(c in _DIGITS for c in tail)) or (len(tail) > 1 and tail[0] == "0"):
        raise ValueError(f"bad bits after slash: {quotation.quote(tail)}")
    if len(tail) > 19 or int(tail) > values.INT_MAX:
        raise ValueError(f"bad bits after slash: {quotation.quote(tail)}")
    if int(tail) > address.bits:
        raise ValueError("prefix length out of range")
    return CIDR(address, int(tail))


def _parse_address(text: str) -> tuple[IP, str]:
    for character in text:
        if character == ".":
            return IP(_parse_v4(text, text), 4), ""
        if character == ":":
            return _parse_v6(text)
        if character == "%":
            raise _unreadable(text, "missing IPv6 address")
    raise _unreadable(text, "unable to parse IP")


def parse_host(text: str) -> IP:
    """Return an address inside a URL, where zones are allowed. Raises ValueError."""
    return _parse_address(text)[0]


def _unreadable(text: str, reason: str, at: str = "") -> ValueError:
    where = f" (at {quotation.quote(at)})" if at else ""
    return ValueError(f"ParseAddr({quotation.quote(text)}): {reason}{where}")


def _parse_v4(address: str, text: str) -> int:
    number = field = digits = dots = 0
    for position, character in enumerate(text):
        if character in _DIGITS:
            if digits == 1 and field == 0:
                raise _unreadable(address, "IPv4 field has octet with leading zero")
            field = field * 10 + int(character)
            digits += 1
            if field > 255:
                raise _unreadable(address, "IPv4 field has value >255")
        elif character == ".":
            if position == 0 or position == len(text) - 1 or text[position - 1] == ".":
                raise _unreadable(address, "IPv4 field must have at least one digit", text[position:])
            if dots == 3:
                raise _unreadable(address, "IPv4 address too long")
            number = number << 8 | field
            dots += 1
            field = digits = 0
        else:
            raise _unreadable(address, "unexpected character", text[position:])
    if dots < 3:
        raise _unreadable(address, "IPv4 address too short")
    return number << 8 | field


def _parse_v6(address: str) -> tuple[IP, str]:
    remainder, percent, zone = address.partition("%")
    if percent and not zone:
        raise _unreadable(address, "zone must be a non-empty string")
    octets: list[int] = []
    ellipsis = -1
    if remainder.startswith("::"):
        ellipsis = 0
        remainder = remainder[2:]
        if not remainder:
            return IP(0, 6), zone
    while len(octets) < 16:
        length = _group_length(address, remainder)
        if remainder[length : length + 1] == ".":
            if ellipsis < 0 and len(octets) != 12:
                reason = "embedded IPv4 address must replace the final 2 fields of the address"
                raise _unreadable(address, reason, remainder)
            if len(octets) + 4 > 16:
                reason = "too many hex fields to fit an embedded IPv4 at the end of the address"
                raise _unreadable(address, reason, remainder)
            octets += _parse_v4(address, remainder).to_bytes(4, "big")
            remainder = ""
            break
        octets += int(remainder[:length], 16).to_bytes(2, "big")
        remainder = remainder[length:]
        if not remainder:
            break
        if remainder[0] != ":":
            raise _unreadable(address, "unexpected character, want colon", remainder)
        if len(remainder) == 1:
            raise _unreadable(address, "colon must be followed by more characters", remainder)
        remainder = remainder[1:]
        if remainder[0] == ":":
            if ellipsis >= 0:
                raise _unreadable(address, "multiple :: in address", remainder)
            ellipsis = len(octets)
            remainder = remainder[1:]
            if not remainder:
                break
    if remainder:
        raise _unreadable(address, "trailing garbage after address", remainder)
    if len(octets) < 16:
        if ellipsis < 0:
            raise _unreadable(address, "address string too short")
        octets[ellipsis:ellipsis] = bytes(16 - len(octets))
    elif ellipsis >= 0:
        raise _unreadable(address, "the :: must expand to at least one field of zeros")
    return IP(int.from_bytes(octets, "big"), 6), zone


def _group_length(address: str, remainder: str) -> int:
    length = 0
    while length < len(remainder) and remainder[length] in _HEX:
        length += 1
        if length > 4:
            raise _unreadable(address, "each group must have 4 or less digits", remainder)
    if not length:
        raise _unreadable(address, "each colon-separated field must have at least one digit", remainder)
    return length


def _is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except faults.Fault:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except faults.Fault:
        return False
    return True


def _is_loopback(ip: IP) -> bool:
    return ip.number >> 24 == 127 if ip.version == 4 else ip.number == 1


def _is_multicast(ip: IP) -> bool:
    return ip.number >> 28 == 0xE if ip.version == 4 else ip.number >> 120 == 0xFF


def _is_link_local_unicast(ip: IP) -> bool:
    return ip.number >> 16 == 0xA9FE if ip.version == 4 else ip.number >> 118 == 0xFE80 >> 6


def _is_link_local_multicast(ip: IP) -> bool:
    return ip.number >> 8 == 0xE00000 if ip.version == 4 else (ip.number >> 112) & 0xFF0F == 0xFF02


def _is_global_unicast(ip: IP) -> bool:
    if ip.number == 0 or (ip.version == 4 and ip.number == 0xFFFFFFFF):
        return False
    return not (_is_loopback(ip) or _is_multicast(ip) or _is_link_local_unicast(ip))


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    if cidr.address.version != ip.version:
        return False
    return cidr.network(cidr.length) == ip.number >> (ip.bits - cidr.length)


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        return _contains_ip(cidr, parse_ip(text))
    except faults.Fault:
        # Upstream loses what was wrong with the text.
        raise faults.no_such_overload() from None


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    if cidr.address.version != other.address.version or cidr.length > other.length:
        return False
    return cidr.network(cidr.length) == other.network(cidr.length)


def _masked(cidr: CIDR) -> CIDR:
    spare = cidr.address.bits - cidr.length
    return CIDR(IP(cidr.address.number >> spare << spare, cidr.address.version), cidr.length)


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_to_ip": parse_ip,
    "ip_to_string": str,
    "ip_family": lambda ip: ip.version,
    "ip_is_canonical": lambda text: str(parse_ip(text)) == text,
    "ip_is_unspecified": lambda ip: ip.number == 0,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "is_ip": _is_ip,
    "string_to_cidr": parse_cidr,
    "cidr_to_string": str,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_cidr_string": lambda cidr, text: _contains_cidr(cidr, parse_cidr(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_ip": lambda cidr: cidr.address,
    "cidr_prefix_length": lambda cidr: cidr.length,
    "cidr_masked": _masked,
    "is_cidr": _is_cidr,
}
