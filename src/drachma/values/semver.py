"""SemVer: a version of Semantic Versioning 2.0.0, with the precedence order and messages Kubernetes uses.

Called by CEL (``semver(s)``, ``semver(s, true)``) and by whatever compares version attributes of devices.
``SemVer.parse`` takes the specification literally; ``SemVer.parse_tolerant`` first drops a leading ``v`` and
leading zeros and fills in a missing minor or patch.

Refused, with upstream's messages: missing components, leading zeros, other characters, parts beyond uint64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.bounds import memory
from drachma.values import quotation

_UINT64_MAX: Final = 2**64 - 1
_CACHED_LENGTH: Final = 64
_NUMERIC: Final = re.compile(r"[0-9]*+").fullmatch
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]*+").fullmatch


class SemVer:
    """An immutable version; equality, order and hash ignore the build metadata."""

    __slots__ = ("_build", "_key", "_prerelease")

    def __init__(
        self, major: int, minor: int, patch: int, *, prerelease: Sequence[str] = (), build: Sequence[str] = ()
    ) -> None:
        for part, number in (("Major", major), ("Minor", minor), ("Patch", patch)):
            if not 0 <= number <= _UINT64_MAX:
                raise errors.InvalidValueError(f"{part} number {number} is not within 0..{_UINT64_MAX}")
        self._prerelease = tuple(prerelease)
        self._build = tuple(build)
        # Numbers sort before words, fewer identifiers before more, any prerelease before the release.
        identifiers = tuple(_identifier_key(identifier) for identifier in self._prerelease)
        for metadata in self._build:
            _check_build(metadata)
        self._key = (major, minor, patch, not identifiers, identifiers)

    @classmethod
    def parse(cls, text: str) -> SemVer:
        """The version spelled by ``text``; raises InvalidValueError with upstream's message."""
        return _parse(text)

    @classmethod
    def parse_tolerant(cls, text: str) -> SemVer:
        """The version spelled by ``text`` after normalisation: ``v1.02`` is ``1.2.0``."""
        parts = text.removeprefix("v").split(".", 2)
        parts = [_strip_leading_zeros(part) for part in parts]
        if len(parts) < 3:
            if "+" in parts[-1] or "-" in parts[-1]:
                raise errors.InvalidValueError("short version cannot contain PreRelease/Build meta data")
            parts += ["0"] * (3 - len(parts))
        return cls.parse(".".join(parts))

    @property
    def major(self) -> int:
        """The first number."""
        return self._key[0]

    @property
    def minor(self) -> int:
        """The second number."""
        return self._key[1]

    @property
    def patch(self) -> int:
        """The third number."""
        return self._key[2]

    @property
    def prerelease(self) -> tuple[str, ...]:
        """The identifiers after ``-``."""
        return self._prerelease

    @property
    def build(self) -> tuple[str, ...]:
        """The identifiers after ``+``, which have no part in comparison."""
        return self._build

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self._prerelease:
            text += "-" + ".".join(self._prerelease)
        if self._build:
            text += "+" + ".".join(self._build)
        return text

    def __repr__(self) -> str:
        return f"SemVer.parse({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not SemVer:
            return NotImplemented
        return self._key == other._key

    def __lt__(self, other: SemVer) -> bool:
        if other.__class__ is not SemVer:
            return NotImplemented
        return self._key < other._key

    def __le__(self, other: SemVer) -> bool:
        if other.__class__ is not SemVer:
            return NotImplemented
        return self._key <= other._key

    def __gt__(self, other: SemVer) -> bool:
        if other.__class__ is not SemVer:
            return NotImplemented
        return self._key > other._key

    def __ge__(self, other: SemVer) -> bool:
        if other.__class__ is not SemVer:
            return NotImplemented
        return self._key >= other._key


@memory.remember(entries=1024, longest=_CACHED_LENGTH)
def _parse(text: str) -> SemVer:
    if not text:
        raise errors.InvalidValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise errors.InvalidValueError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "Major")
    minor = _number(parts[1], "Minor")
    before_build, plus, build = parts[2].partition("+")
    core, dash, prerelease = before_build.partition("-")
    return SemVer(
        major,
        minor,
        _number(core, "Patch"),
        prerelease=prerelease.split(".") if dash else (),
        build=build.split(".") if plus else (),
    )


def _number(text: str, part: str) -> int:
    if not _NUMERIC(text):
        raise errors.InvalidValueError(f"Invalid character(s) found in {part.lower()} number {quotation.quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise errors.InvalidValueError(f"{part} number must not contain leading zeroes {quotation.quote(text)}")
    return _uint64(text)


def _uint64(digits: str) -> int:
    if not digits:
        raise errors.InvalidValueError('strconv.ParseUint: parsing "": invalid syntax')
    # The length first: Python refuses to convert thousands of digits.
    if len(digits) > 20 or (number := int(digits)) > _UINT64_MAX:
        raise errors.InvalidValueError(f'strconv.ParseUint: parsing "{digits}": value out of range')
    return number


def _identifier_key(identifier: str) -> tuple[bool, int, str]:
    """Return the sort key of a prerelease identifier: numbers by value, then words in ASCII order."""
    if not identifier:
        raise errors.InvalidValueError("Prerelease is empty")
    if _NUMERIC(identifier):
        if len(identifier) > 1 and identifier[0] == "0":
            raise errors.InvalidValueError(
                f"Numeric PreRelease version must not contain leading zeroes {quotation.quote(identifier)}"
            )
        return (False, _uint64(identifier), "")
    if not _IDENTIFIER(identifier):
        raise errors.InvalidValueError(f"Invalid character(s) found in prerelease {quotation.quote(identifier)}")
    return (True, 0, identifier)


def _check_build(metadata: str) -> None:
    if not metadata:
        raise errors.InvalidValueError("Build meta data is empty")
    if not _IDENTIFIER(metadata):
        raise errors.InvalidValueError(f"Invalid character(s) found in build meta data {quotation.quote(metadata)}")


def _strip_leading_zeros(part: str) -> str:
    # Upstream counts bytes, so a lone character beyond ASCII is not short: it gets its zero in the message.
    if len(part) < 2 and part.isascii():
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else "0" + stripped
