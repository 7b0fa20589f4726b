"""Field errors: what is wrong with which field, in upstream's words, and how errors of two rule sets become one list.

Rules are generators of :class:`FieldError`, so that errors accumulate; those that run most often return what they found
instead, which costs less where nothing is wrong. Upstream checks an object twice, by hand-written rules and by rules
declared on its types; :func:`merge` drops a hand-written error where a declared rule says the same.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from drachma.validation import rendering
from drachma.validation.path import Path
from drachma.values import quotation


class Reason(enum.StrEnum):
    """Why a value is refused; the ``reason`` of a cause in a Status."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    INTERNAL = "InternalError"
    TYPE_INVALID = "FieldValueTypeInvalid"


_TITLES: Final = {
    Reason.NOT_FOUND: "Not found",
    Reason.REQUIRED: "Required value",
    Reason.DUPLICATE: "Duplicate value",
    Reason.INVALID: "Invalid value",
    Reason.NOT_SUPPORTED: "Unsupported value",
    Reason.FORBIDDEN: "Forbidden",
    Reason.TOO_LONG: "Too long",
    Reason.TOO_MANY: "Too many",
    Reason.INTERNAL: "Internal error",
    Reason.TYPE_INVALID: "Invalid value",
}

_WITHOUT_VALUE: Final = frozenset({Reason.REQUIRED, Reason.FORBIDDEN, Reason.TOO_LONG, Reason.INTERNAL})


class _Omitted:
    """Stands for a value that messages do not show."""

    __slots__ = ()


OMITTED: Final = _Omitted()


class FieldError(msgspec.Struct, frozen=True):
    """One refused value.

    ``origin`` names the rule, ``covered`` says that a declared rule is expected to report the same; both only serve
    :func:`merge` and are not part of what clients see.
    """

    type: Reason
    field: str
    value: object = ""
    detail: str = ""
    origin: str = ""
    covered: bool = False

    @property
    def body(self) -> str:
        """The message without the field, as a cause in a Status has it."""
        title = _TITLES[self.type]
        is_bare = self.type in _WITHOUT_VALUE or self.value is OMITTED
        shown = title if is_bare else f"{title}: {_show(self.value)}"
        return f"{shown}: {self.detail}" if self.detail else shown

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


Errors = Iterator[FieldError]
Found = Sequence[FieldError]


def invalid(at: Path, value: object, detail: str, *, origin: str = "") -> FieldError:
    """A malformed or out-of-range value."""
    return FieldError(Reason.INVALID, str(at), value, detail, origin)


def problems(at: Path, value: object, details: Sequence[str], *, origin: str = "") -> Found:
    """A malformed value for each of several reasons; mostly there are none."""
    return [invalid(at, value, detail, origin=origin) for detail in details] if details else ()


def required(at: Path, detail: str = "") -> FieldError:
    """A value that must be there."""
    return FieldError(Reason.REQUIRED, str(at), "", detail)


def forbidden(at: Path, detail: str) -> FieldError:
    """A value that is well formed and not allowed here or now."""
    return FieldError(Reason.FORBIDDEN, str(at), "", detail)


def duplicate(at: Path, value: object) -> FieldError:
    """A value that another item has already."""
    return FieldError(Reason.DUPLICATE, str(at), value)


def with_detail(error: FieldError, detail: str) -> FieldError:
    """The same error, and what else there is to say."""
    return structs.replace(error, detail=detail)


def not_found(at: Path, value: object, detail: str = "") -> FieldError:
    """A reference to something that is not there."""
    return FieldError(Reason.NOT_FOUND, str(at), value, detail)


def not_supported(at: Path, value: object, supported: Sequence[str]) -> FieldError:
    """A value outside an enumeration, which is named unless nothing is in it."""
    return not_supported_at(str(at), value, supported)


def not_supported_at(field: str, value: object, supported: Sequence[str]) -> FieldError:
    """The same for a field whose path is spelled already."""
    values = ", ".join(map(quotation.quote, supported))
    return FieldError(Reason.NOT_SUPPORTED, field, value, f"supported values: {values}" if values else "")


def too_long(at: Path, limit: int, *, unit: str = "byte", origin: str = "") -> FieldError:
    """A text beyond its limit; it is not repeated in the message."""
    units = unit if limit == 1 else f"{unit}s"
    return FieldError(Reason.TOO_LONG, str(at), "", f"may not be more than {limit} {units}", origin)


def too_many(at: Path, count: int, limit: int, *, origin: str = "") -> FieldError:
    """A list or map beyond its limit."""
    return too_many_at(str(at), count, limit, origin=origin)


def too_many_at(field: str, count: int, limit: int, *, origin: str = "") -> FieldError:
    """The same for a field whose path is spelled already."""
    items = "item" if limit == 1 else "items"
    return FieldError(Reason.TOO_MANY, field, count, f"must have at most {limit} {items}", origin)


def internal(at: Path, detail: str) -> FieldError:
    """Something that is not the client's fault."""
    return FieldError(Reason.INTERNAL, str(at), "", detail)


def covered(errors: Iterable[FieldError], *, origin: str | None = None) -> Found:
    """The same errors, marked as expected from a declared rule too; ``origin`` replaces theirs."""
    if not errors:
        return ()
    return [structs.replace(error, covered=True, origin=error.origin if origin is None else origin) for error in errors]


def merge(written: Found, declared: Found) -> tuple[FieldError, ...]:
    """What clients are told: hand-written errors that no declared rule repeats, once each, then the declared ones.

    A declared rule repeats an error if reason, field and origin agree; an invalid value needs an origin for that. Paths
    of declared rules may be those of v1beta1 and are compared in their v1 form.
    """
    if not written and not declared:
        return ()
    repeated = {(error.type, path, error.origin) for error in declared for path in (error.field, _in_v1(error.field))}
    kept: dict[str, FieldError] = {}
    for error in written:
        named = error.origin or error.type is not Reason.INVALID
        if not (error.covered and named and (error.type, error.field, error.origin) in repeated):
            kept.setdefault(str(error), error)
    return (*kept.values(), *declared)


_FLAT_REQUEST: Final = re.compile(
    r"spec\.devices\.requests\[(\d+)\]\."
    r"(deviceClassName|selectors|allocationMode|count|adminAccess|tolerations|derivedAttributes)"
)
_BASIC_DEVICE: Final = re.compile(r"spec\.devices\[(\d+)\]\.basic\.")


def _in_v1(path: str) -> str:
    nested = _FLAT_REQUEST.sub(r"spec.devices.requests[\1].exactly.\2", path)
    return nested if nested != path else _BASIC_DEVICE.sub(r"spec.devices[\1].", path)


def _show(value: object) -> str:
    if isinstance(value, rendering.Rendered):
        return value
    if isinstance(value, str):
        return quotation.quote(value)
    return rendering.wire(value)
