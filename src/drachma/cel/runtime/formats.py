"""Named formats: ``format.dns1123Label().validate(s)`` and ``format.named("uuid")``.

Called through ``library``. A format checks a text and gives the messages of what is wrong with it.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable
from typing import Any, Final

from drachma.cel.runtime import urls, values

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_VALUE_RULE: Final = f"a valid label must be an empty string or {_NAME_RULE.removeprefix('must ')}"

_matches_label: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?").fullmatch
_matches_subdomain: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
).fullmatch
_matches_label_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?").fullmatch
_matches_name: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]").fullmatch
_matches_uuid: Final = re.compile(
    r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
).fullmatch
_matches_date: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})").fullmatch
_matches_clock: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[^\n][0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
).fullmatch
_matches_base64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
).fullmatch


class Format:
    """A named format; ``regex_size`` is what validation counts for in cost."""

    __slots__ = ("check", "name", "regex_size")

    def __init__(self, name: str, check: Callable[[str], list[str]], *, regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size

    def __str__(self) -> str:
        return self.name


def _rule(message: str, pattern: str, *examples: str) -> str:
    examples_text = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {examples_text}regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int, unit: str = "characters") -> list[str]:
    # Bytes are counted in any case; upstream has both words.
    return [f"must be no more than {limit} {unit}"] if len(text.encode()) > limit else []


def _label(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _matches_label(text):
        if _matches_subdomain(text):
            problems.append("must not contain dots")
        else:
            problems.append(_rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return problems


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    problems = _too_long(text, 253, unit)
    if not _matches_subdomain(text):
        problems.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _matches_label_1035(text):
        problems.append(_rule(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _prefix_of(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the rule for a text that something will be appended to: a dash at the end is valid."""

    def check_prefix(text: str) -> list[str]:
        # Upstream replaces two bytes, and so do we.
        data = text.encode()
        if len(data) > 1 and data.endswith(b"-"):
            return check((data[:-2] + b"a").decode("utf-8", "replace"))
        return check(text)

    return check_prefix


def _qualified_name(text: str) -> list[str]:
    problems: list[str] = []
    rule = _rule(_NAME_RULE, _NAME, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain(parts[0], "bytes")]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _too_long(name, 63, "bytes")]
    if not _matches_name(name):
        problems.append(f"name part {rule}")
    return problems


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, 63, "bytes")
    if text and not _matches_name(text):
        problems.append(_rule(_VALUE_RULE, f"({_NAME})?", "MyValue", "my_value", "12345"))
    return problems


def _uri(text: str) -> list[str]:
    try:
        urls.parse_request(text)
    except ValueError as error:
        return [str(error)]
    return []


def _uuid(text: str) -> list[str]:
    return [] if _matches_uuid(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if _matches_base64(text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    match = _matches_date(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        # Year 0 is a year to Go; it has the calendar of any other leap year.
        dt.date(year or 4, month, day)
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    date, separator, time = text.lower().partition("t")
    match = _matches_clock(time.partition("t")[0]) if separator and _is_date(date) else None
    if match is None or match[1] > "23" or match[2] > "59" or match[3] > "59":
        return ["invalid datetime"]
    return []


FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", _label, regex_size=30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _subdomain, regex_size=60),
    "dns1035Label": Format("DNS1035Label", _label_1035, regex_size=30),
    "qualifiedName": Format("QualifiedName", _qualified_name, regex_size=60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix_of(_label), regex_size=30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix_of(_subdomain), regex_size=60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix_of(_label_1035), regex_size=30),
    "labelValue": Format("LabelValue", _label_value, regex_size=40),
    "uri": Format("URI", _uri, regex_size=1103),
    "uuid": Format("uuid", _uuid, regex_size=70),
    "byte": Format("byte", _byte, regex_size=84),
    "date": Format("date", _date, regex_size=71),
    "datetime": Format("datetime", _datetime, regex_size=71),
}


def _named(name: str) -> values.Optional:
    format_ = FORMATS.get(name)
    return values.NONE if format_ is None else values.Optional(format_)


def _validate(rule: Format, text: str) -> values.Optional:
    problems = rule.check(text)
    return values.Optional(problems) if problems else values.NONE


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "format-validate": _validate,
    "format-named": _named,
    **{f"format.{name}": functools.partial(FORMATS.__getitem__, name) for name in FORMATS},
}
