"""Constraints on single values: enumerations, ranges, lengths, and the forms of texts.

All take a value and its path, and return its errors, mostly none. Functions that are called with a limit or a list of
values return such a constraint; they are called once, where rules are declared.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Found
from drachma.validation.path import Path
from drachma.values import names, quantity

Constraint = formats.Constraint

CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"

_LAST_PORT: Final = 65535
_LAST_ID: Final = 2**31 - 1
_PORT_NAME_LENGTH: Final = 15
_PORT_CHARACTERS: Final = re.compile(r"[-a-z0-9]+")
_LETTER: Final = re.compile(r"[a-z]")
_LEADING_ZERO: Final = re.compile(r"(?:^|[.:])0[0-9]")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")


# Errors of every value


def forbidden(detail: str) -> Constraint:
    """Return the constraint that no value fulfils."""
    return lambda value, at: [fielderror.forbidden(at, detail)]


def required(detail: str) -> Constraint:
    """Return the constraint that reports a value as missing."""
    return lambda value, at: [fielderror.required(at, detail)]


def invalid(detail: str, show: Callable[[Any], object]) -> Constraint:
    """Return the constraint that reports a value as invalid, in the form that ``show`` makes of it."""
    return lambda value, at: [fielderror.invalid(at, show(value), detail)]


FORMS: Final[Mapping[str, Callable[[Any], object]]] = {
    "": lambda value: value,
    "enum": lambda value: rendering.named(value or ""),
    "null": lambda value: rendering.NULL,
    "empty": lambda value: "",
    "omitted": lambda value: fielderror.OMITTED,
    "text": lambda value: value or "",
    "number": lambda value: value or 0,
    "json": rendering.wire,
}
"""Forms of values in messages."""


# Enumerations


def one_of(*supported: str) -> Constraint:
    """Return the constraint of an enumeration; messages list the values in this order."""
    return lambda value, at: (
        () if value in supported else [fielderror.not_supported(at, rendering.named(value), supported)]
    )


def one_of_texts(*supported: str) -> Constraint:
    """Return the constraint of plain texts that are compared with a list; messages quote these as Go does."""
    return lambda value, at: () if value in supported else [fielderror.not_supported(at, value, supported)]


# Numbers


def at_least(least: int, detail: str = "") -> Constraint:
    """Return the constraint of numbers from ``least`` on."""
    message = detail or f"must be greater than or equal to {least}"
    return lambda value, at: [fielderror.invalid(at, value, message)] if value < least else ()


def at_most(most: int, detail: str = "") -> Constraint:
    """Return the constraint of numbers up to ``most``."""
    message = detail or f"must be less than or equal to {most}"
    return lambda value, at: [fielderror.invalid(at, value, message)] if value > most else ()


def between(least: int, most: int, detail: str = "") -> Constraint:
    """Return the constraint of numbers from ``least`` to ``most``."""
    message = detail or f"must be between {least} and {most}, inclusive"
    return lambda value, at: () if least <= value <= most else [fielderror.invalid(at, value, message)]


not_negative: Final = at_least(0)
positive: Final = at_least(1, POSITIVE)
port: Final = between(1, _LAST_PORT)
user_or_group: Final = between(0, _LAST_ID)
file_mode: Final = between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")


def not_negative_quantity(value: str, at: Path) -> Found:
    """Check that a quantity is zero or more."""
    text = str(value)
    return [fielderror.invalid(at, text, NOT_NEGATIVE)] if quantity.Quantity.parse(text).sign < 0 else ()


def positive_quantity(detail: str = POSITIVE) -> Constraint:
    """Return the constraint of quantities above zero."""

    def constraint(value: str, at: Path) -> Found:
        text = str(value)
        return [fielderror.invalid(at, text, detail)] if quantity.Quantity.parse(text).sign <= 0 else ()

    return constraint


# Texts


def not_empty(value: str, at: Path) -> Found:
    """Check that there is a text."""
    return () if value else [fielderror.required(at)]


def lone_star(title: str) -> Constraint:
    """Return the constraint of lists in which a star, which stands for everything, is the only item."""
    detail = f"if '*' is present, must not specify other {title}"
    return lambda value, at: [fielderror.invalid(at, list(value), detail)] if "*" in value and len(value) > 1 else ()


def text_with_one_error(problems: Callable[[str], Sequence[str]], prefix: str = "") -> Constraint:
    """Return the constraint of texts in which a function finds no problems; one error has all of them."""

    def constraint(value: str, at: Path) -> Found:
        details = problems(value)
        return [fielderror.invalid(at, value, prefix + ",".join(details))] if details else ()

    return constraint


text: Final = formats.text
kind_name: Final = text_with_one_error(
    lambda name: names.dns1035_label(name.lower()), "may have mixed case, but should otherwise match: "
)
resource_label: Final = text_with_one_error(names.dns1035_label)
dns_label: Final = text(names.dns1123_label)
dns_subdomain: Final = text(names.dns1123_subdomain)
path_segment: Final = text(names.path_segment_name)
qualified_name: Final = text(names.qualified_name)


def matches(pattern: re.Pattern[str], detail: str) -> Constraint:
    """Return the constraint of texts that a pattern matches as a whole."""
    return lambda value, at: () if pattern.fullmatch(value) else [fielderror.invalid(at, value, detail)]


def max_length(limit: int) -> Constraint:
    """Return the constraint of texts of at most so many characters; the message says bytes, as upstream's does."""
    return lambda value, at: [fielderror.too_long(at, limit)] if len(value) > limit else ()


def max_bytes(limit: int) -> Constraint:
    """Return the constraint of texts of at most so many bytes."""
    return lambda value, at: (
        [fielderror.too_long(at, limit, origin="maxBytes")] if names.byte_length(value) > limit else ()
    )


def max_items(limit: int) -> Constraint:
    """Return the constraint of lists of at most so many items."""
    return lambda value, at: [fielderror.too_many(at, len(value), limit)] if len(value) > limit else ()


def label(name: str, at: Path) -> Found:
    """Check a DNS label that must not be empty."""
    return formats.short_name(name, at) if name else [fielderror.required(at)]


def port_name_problems(name: str) -> list[str]:
    """Return what keeps a text from being the name of a port."""
    problems = []
    if len(name) > _PORT_NAME_LENGTH:
        problems.append(f"must be no more than {_PORT_NAME_LENGTH} characters")
    if not _PORT_CHARACTERS.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_or_name(value: int | str, at: Path) -> Found:
    """Check a port that is given by its number, or by the name that it has in its container."""
    return fielderror.problems(at, value, port_name_problems(value)) if isinstance(value, str) else port(value, at)


def config_key_problems(key: str) -> list[str]:
    """Return what keeps a key of a ConfigMap or Secret from being a file name."""
    problems = []
    if len(key) > names.SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {names.SUBDOMAIN_LENGTH} characters")
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key == ".":
        problems.append("must not be '.'")
    elif key.startswith(".."):
        problems.append("must not be '..'" if key == ".." else "must not start with '..'")
    return problems


def domain_prefixed_path(text: str, at: Path) -> Found:
    """Check a domain with a path behind it; only the domain has a form."""
    domain, _, path = text.partition("/")
    if not text:
        return [fielderror.required(at)]
    if not domain or not path:
        return [fielderror.invalid(at, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return dns_subdomain(domain, at)


# Paths and addresses


def absolute_path(path: str, at: Path) -> Found:
    """Check that a path starts at the root."""
    return () if path.startswith("/") else [fielderror.invalid(at, path, "must be an absolute path")]


def no_backsteps(path: str, at: Path) -> Found:
    """Check that a path has no ``..`` segment."""
    return [fielderror.invalid(at, path, "must not contain '..'")] if ".." in path.split("/") else ()


def relative_path(path: str, at: Path) -> Found:
    """Check that a path is relative and has no ``..`` segment."""
    errors = no_backsteps(path, at)
    return [fielderror.invalid(at, path, "must be a relative path"), *errors] if path.startswith("/") else errors


def file_path(path: str, at: Path) -> Found:
    """Check a relative path that does not start as the names do that kubelet reserves in volumes."""
    errors = relative_path(path, at)
    if path.startswith("..") and not path.startswith("../"):
        return [*errors, fielderror.invalid(at, path, "must not start with '..'")]
    return errors


def address(value: str, at: Path) -> Found:
    """Check an IP address in the form that new objects must use."""
    parsed = formats.lenient_address(value)
    if parsed is None:
        return [fielderror.invalid(at, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if getattr(parsed, "ipv4_mapped", None) is not None:
        return [fielderror.invalid(at, value, "must not be an IPv4-mapped IPv6 address")]
    if _LEADING_ZERO.search(value) and "." in value:
        return [fielderror.invalid(at, value, "must not have leading 0s")]
    return ()
