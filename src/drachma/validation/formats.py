"""Texts that must have a certain form: names of drivers, pools, devices, attributes, nodes; labels; uids; addresses.

Each rule takes the text and where it is. The forms themselves and their messages are in :mod:`drachma.values.names`.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from drachma.validation import fielderror, limits, rendering
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names, quotation

_VERSION: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


Constraint = Callable[[Any, Path], Found]


def text(problems: Callable[[str], Sequence[str]], *, origin: str = "") -> Constraint:
    """Return the constraint of texts in which a function finds no problems."""

    def constraint(value: str, at: Path) -> Found:
        details = problems(value)
        return fielderror.problems(at, value, details, origin=origin) if details else ()

    return constraint


short_name: Final = text(names.dns1123_label, origin="format=k8s-short-name")
"""Checks a DNS label: devices, requests, counters."""
long_name: Final = text(names.dns1123_subdomain, origin="format=k8s-long-name")
"""Checks a DNS subdomain: classes, claims, parts of pool names."""
node_name: Final = text(names.dns1123_subdomain)
label_key: Final = text(names.label_key, origin="format=k8s-label-key")
"""Checks the key of a label, a taint or a binding condition."""
label_value: Final = text(names.label_value)
uid: Final = text(names.uid, origin="format=k8s-uuid")
"""Checks a uid in its normal form, 36 lower-case characters."""


def driver_name(text: str, at: Path) -> Found:
    """A driver's name: a short DNS subdomain in any case."""
    if not text:
        return [fielderror.required(at)]
    details = names.driver_name(text)
    errors = fielderror.problems(at, text, details, origin="format=k8s-long-name-caseless") if details else ()
    if names.is_longer(text, limits.DRIVER_NAME):
        return [fielderror.too_long(at, limits.DRIVER_NAME, origin="maxLength"), *errors]
    return errors


def pool_name(text: str, at: Path) -> Found:
    """DNS subdomains with slashes between them."""
    if not text:
        return [fielderror.required(at)]
    origin = "format=k8s-resource-pool-name"
    is_too_long = names.is_longer(text, limits.POOL_NAME)
    errors = [fielderror.too_long(at, limits.POOL_NAME, origin=origin)] if is_too_long else []
    for part in text.split("/"):
        details = names.dns1123_subdomain(part)
        if details:
            errors += fielderror.problems(at, part, details, origin=origin)
    return errors


def class_name(text: str, at: Path) -> Found:
    """A reference to a device class."""
    return long_name(text, at) if text else [fielderror.required(at)]


def qualified_name(text: str, at: Path) -> Errors:
    """``identifier`` or ``domain/identifier``: attributes and capacities.

    Upstream lets more than one slash pass unchecked, and so do we.
    """
    match text.split("/"):
        case [identifier]:
            yield from _c_identifier(identifier, at)
        case [domain, identifier]:
            if domain:
                yield from driver_name(domain, at)
            else:
                yield fielderror.invalid(at, "", "the domain must not be empty")
            if identifier:
                yield from _c_identifier(identifier, at)
            else:
                yield fielderror.invalid(at, "", "the name must not be empty")


def fully_qualified_name(text: str, at: Path) -> Errors:
    """A qualified name that must have its domain."""
    yield from qualified_name(text, at)
    if "/" not in text:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield fielderror.invalid(at, rendering.named(text), detail)


def attribute_text(text: str, at: Path) -> Errors:
    """A device attribute's string value."""
    if names.is_longer(text, limits.ATTRIBUTE_VALUE_BYTES):
        yield fielderror.too_long(at, limits.ATTRIBUTE_VALUE_BYTES)


def attribute_version(text: str, at: Path) -> Errors:
    """A device attribute's version value."""
    if not _VERSION.fullmatch(text):
        yield fielderror.invalid(at, text, "must be a string compatible with semver.org spec 2.0.0")
    yield from attribute_text(text, at)


def interface_address(text: str, at: Path) -> Errors:
    """An address with the length of its network's prefix, in canonical form."""
    canonical = _canonical_interface(text)
    if canonical is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield fielderror.invalid(at, text, detail)
    elif canonical != text:
        yield fielderror.invalid(at, text, f"must be in canonical form ({quotation.quote(canonical)})")


def json_object(value: Any, at: Path, *, context: Context, limit: int, is_stored: bool = False) -> Errors:
    """Yield the errors of a JSON object for a driver; a stored one may be too long."""
    if value is None:
        yield fielderror.required(at)
    elif not is_stored and context.opaque_length(value, at) > limit:
        yield fielderror.too_long(at, limit)
    elif not isinstance(value, dict):
        yield fielderror.invalid(at, "<value omitted>", "must be a valid JSON object")


def _c_identifier(text: str, at: Path) -> Errors:
    if names.is_longer(text, limits.ATTRIBUTE_ID):
        yield fielderror.too_long(at, limits.ATTRIBUTE_ID)
    for message in names.c_identifier(text):
        yield fielderror.invalid(at, text, message)


def _canonical_interface(text: str) -> str | None:
    """The canonical form of what upstream's lenient parser reads, which ignores leading zeros."""
    address, separator, length = text.partition("/")
    bits = _decimal(length)
    parsed = lenient_address(address)
    if not separator or bits is None or parsed is None or bits > parsed.max_prefixlen:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        # Go prints an IPv4 address in IPv6 clothes as the IPv4 address that it is.
        return f"{parsed.ipv4_mapped}/{bits - 96 if bits > 32 else bits}"
    return f"{parsed}/{bits}"


def lenient_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that upstream's lenient parser reads, which ignores leading zeros; None if there is none."""
    *groups, last = text.split(":")
    if "." in last:
        octets = [_decimal(octet) for octet in last.split(".")]
        last = "" if None in octets else ".".join(map(str, octets))
    else:
        groups, last = [*groups, last], ""
    groups = [group.lstrip("0") or "0" if group else "" for group in groups]
    try:
        parsed = ipaddress.ip_address(":".join([*groups, last] if last else groups))
    except ValueError:
        return None
    return None if isinstance(parsed, ipaddress.IPv6Address) and parsed.scope_id is not None else parsed


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return the network of an address with the length of a prefix, or None if the text has another form."""
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _decimal(text: str) -> int | None:
    if not text.isascii() or not text.isdigit() or len(text.lstrip("0")) > 3:
        return None
    return int(text[-64:])
