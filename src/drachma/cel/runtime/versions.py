"""Semantic versions in CEL: ``semver("1.2.3")`` and its functions. Called through ``library``."""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.cel.runtime import faults, values
from drachma.values import semver

SemVer = semver.SemVer


def parse(text: str, *, tolerant: bool = False) -> SemVer:
    """Return the version spelled by ``text``. Raises Fault with upstream's message."""
    try:
        return SemVer.parse_tolerant(text) if tolerant else SemVer.parse(text)
    except errors.InvalidValueError as error:
        raise faults.Fault(str(error)) from None


def _is_version(text: str, *, tolerant: bool = False) -> bool:
    try:
        parse(text, tolerant=tolerant)
    except faults.Fault:
        return False
    return True


def _compare(left: SemVer, right: SemVer) -> int:
    return (left > right) - (left < right)


def _signed(number: int) -> int:
    # Upstream narrows the unsigned number without looking.
    return number if number <= values.INT_MAX else number - 2**64


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_to_semver": parse,
    "string_bool_to_semver": lambda text, tolerant: parse(text, tolerant=tolerant),
    "is_semver_string": _is_version,
    "is_semver_string_bool": lambda text, tolerant: _is_version(text, tolerant=tolerant),
    "semver_is_greater_than": lambda left, right: left > right,
    "semver_is_less_than": lambda left, right: left < right,
    "semver_compare_to": _compare,
    "semver_major": lambda version: _signed(version.major),
    "semver_minor": lambda version: _signed(version.minor),
    "semver_patch": lambda version: _signed(version.patch),
}
