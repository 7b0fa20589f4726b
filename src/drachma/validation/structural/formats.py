"""Formats of texts that schemas can ask for, as upstream's registry checks them.

Formats that are not in it mean nothing, and so does one on a value of another type. Names are compared without dashes.
"""

import base64
import binascii
import re
import urllib.parse
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from drachma.cel.runtime import instants, values
from drachma.validation import formats as texts
from drachma.validation.structural.schema import Schema

_SECOND: Final = 10**9
_UNITS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), 24 * 3600 * _SECOND),
    (("w", "wk", "week"), 7 * 24 * 3600 * _SECOND),
)
_parts: Final = re.compile(r"([0-9]{1,19})\s*([A-Za-zµ]+)").finditer


def parse_duration(text: str) -> values.Duration | None:
    """The duration that a text spells; None where it spells none."""
    plain = instants.parse_duration(text)
    if plain is not None:
        return plain
    total, is_duration = 0, False
    for match in _parts(text):
        unit = match[2].lower()
        for names, nanos in _UNITS:
            # Of every unit the last name stands for all words that begin with it.
            hits = (unit in names[:-1]) + unit.startswith(names[-1])
            if hits:
                is_duration = True
                total += hits * int(match[1]) * nanos
    return values.Duration(total) if is_duration and abs(total) <= values.INT_MAX else None


Check = Callable[[str], bool]

_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def normalized(name: str) -> str:
    """A format's name in the form that names are compared in."""
    return name.replace("-", "")


def supported(schema: Schema) -> str:
    """The format of a schema, as it is written; empty where it means nothing."""
    name = schema.format
    if not name:
        return ""
    kind = "" if schema.is_int_or_string else schema.type
    if kind in ("", "string"):
        return name if normalized(name) in CHECKS else ""
    return name if name in _NUMBERS.get(kind, ()) else ""


def _pattern(pattern: str) -> Check:
    matches = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: matches(text) is not None


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_short_name: Final = _pattern(_LABEL)
_is_long_name: Final = _pattern(rf"{_LABEL}(\.{_LABEL})*")
_HEX: Final = "[0-9a-fA-F]"
_is_hostname: Final = re.compile(
    r"[^\W_](-?[^\W_]{0,62})?|([^\W_]([^\W_-]|[-]){0,62}\.)+[^\W\d_]{2,63}", re.UNICODE
).fullmatch
_is_day: Final = _pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_is_time: Final = re.compile(
    r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.DOTALL
).fullmatch
_is_mailbox: Final = re.compile(r"[^\s@<>\"(),:;\[\]\\]+@[^\s@<>\"(),:;\\]+").fullmatch
_CARD: Final = _pattern(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11}"
)
_MACS: Final = re.compile(
    r"([0-9a-fA-F]{2}([:-])[0-9a-fA-F]{2}(\2[0-9a-fA-F]{2}){4}((\2[0-9a-fA-F]{2}){2}|(\2[0-9a-fA-F]{2}){14})?"
    r"|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}((\.[0-9a-fA-F]{4})|(\.[0-9a-fA-F]{4}){7})?)"
).fullmatch


def _hostname(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 255 and all(len(label) <= 63 for label in labels) and _is_hostname(text) is not None


def _ipv4(text: str) -> bool:
    return "." in text and texts.lenient_address(text) is not None


def _ipv6(text: str) -> bool:
    return ":" in text and texts.lenient_address(text) is not None


def _cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    parsed = texts.lenient_address(address)
    if not slash or parsed is None or not length.isascii() or not length.isdigit():
        return False
    return int(length[-9:]) <= parsed.max_prefixlen


def _uri(text: str) -> bool:
    """Absolute, or an absolute path."""
    if not text or any(ord(character) <= 32 or ord(character) == 127 for character in text):
        return False
    try:
        parsed = urllib.parse.urlsplit(text)
    except ValueError:
        return False
    return bool(parsed.scheme) or text.startswith("/")


def _byte(text: str) -> bool:
    if not text or len(text) % 4:
        return False
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _date(text: str) -> bool:
    if not _is_day(text):
        return False
    try:
        # Go has a year 0, and Python has not; both are leap years of the same calendar.
        date.fromisoformat(text if text[:4] != "0000" else f"2000{text[4:]}")
    except ValueError:
        return False
    return True


def _date_time(text: str) -> bool:
    date, _, time = text.lower().partition("t")
    return _date(date) and _is_time(time) is not None


def _email(text: str) -> bool:
    """An address, or a name and an address in angle brackets."""
    name, bracket, address = text.strip().rpartition("<")
    if bracket:
        return address.endswith(">") and "@" not in name and _is_mailbox(address[:-1]) is not None
    return _is_mailbox(address) is not None


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((place + 1) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return total % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD(digits):
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _uuid(version: str, variant: str) -> Check:
    return _pattern(f"(?i:{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}})")


CHECKS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _pattern(f"{_HEX}{{24}}"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": lambda text: _MACS(text) is not None,
    "uuid": _uuid(_HEX, _HEX),
    "uuid3": _uuid("3", _HEX),
    "uuid4": _uuid("4", "[89abAB]"),
    "uuid5": _uuid("5", "[89abAB]"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _pattern(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "hexcolor": _pattern(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _pattern(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,"
        r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)"
    ),
    "byte": _byte,
    "password": lambda _text: True,
    "date": _date,
    "duration": lambda text: parse_duration(text) is not None,
    "datetime": _date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _is_short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _is_long_name(text),
}
"""What each format takes, by its name without dashes."""
