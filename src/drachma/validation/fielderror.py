"""Field errors with upstream's messages, and the merge of the errors of two sets of rules.

Rules yield or return :class:`FieldError`s, so that errors accumulate; rules that run most often return a list or an
empty tuple, which costs less for a valid value. Upstream checks an object twice, by hand-written rules and by rules
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
    """Reason of an error; the ``reason`` of a cause in a Status."""

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
    """Value that messages do not show."""

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
        """Return the message without the field, as a cause in a Status has it."""
        title = _TITLES[self.type]
        is_bare = self.type in _WITHOUT_VALUE or self.value is OMITTED
        display = title if is_bare else f"{title}: {_show(self.value)}"
        return f"{display}: {self.detail}" if self.detail else display

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


Errors = Iterator[FieldError]
Found = Sequence[FieldError]


def invalid(at: Path, value: object, detail: str, *, origin: str = "") -> FieldError:
    """Return the error of a malformed or out-of-range value."""
    return FieldError(Reason.INVALID, str(at), value, detail, origin)


def problems(at: Path, value: object, details: Sequence[str], *, origin: str = "") -> Found:
    """Return an error of a value for each of its problems."""
    return [invalid(at, value, detail, origin=origin) for detail in details] if details else ()


def required(at: Path, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(Reason.REQUIRED, str(at), "", detail)


def forbidden(at: Path, detail: str) -> FieldError:
    """Return the error of a well-formed value that is not allowed."""
    return FieldError(Reason.FORBIDDEN, str(at), "", detail)


def duplicate(at: Path, value: object) -> FieldError:
    """Return the error of a repeated value."""
    return FieldError(Reason.DUPLICATE, str(at), value)


def replace_detail(error: FieldError, detail: str) -> FieldError:
    """Return an error with another detail."""
    return structs.replace(error, detail=detail)


def not_found(at: Path, value: object, detail: str = "") -> FieldError:
    """Return the error of a reference to something that does not exist."""
    return FieldError(Reason.NOT_FOUND, str(at), value, detail)


def not_supported(at: Path, value: object, supported: Sequence[str]) -> FieldError:
    """Return the error of a value outside an enumeration."""
    return not_supported_at(str(at), value, supported)


def not_supported_at(field: str, value: object, supported: Sequence[str]) -> FieldError:
    """Like the function without ``_at``, for a field whose path is spelled already."""
    values = ", ".join(map(quotation.quote, supported))
    return FieldError(Reason.NOT_SUPPORTED, field, value, f"supported values: {values}" if values else "")


def too_long(at: Path, limit: int, *, unit: str = "byte", origin: str = "") -> FieldError:
    """Return the error of a text that is too long, which the message does not repeat."""
    units = unit if limit == 1 else f"{unit}s"
    return FieldError(Reason.TOO_LONG, str(at), "", f"may not be more than {limit} {units}", origin)


def too_many(at: Path, count: int, limit: int, *, origin: str = "") -> FieldError:
    """Return the error of a list or map that is too large."""
    return too_many_at(str(at), count, limit, origin=origin)


def too_many_at(field: str, count: int, limit: int, *, origin: str = "") -> FieldError:
    """Like the function without ``_at``, for a field whose path is spelled already."""
    items = "item" if limit == 1 else "items"
    return FieldError(Reason.TOO_MANY, field, count, f"must have at most {limit} {items}", origin)


def internal(at: Path, detail: str) -> FieldError:
    """Return an internal error."""
    return FieldError(Reason.INTERNAL, str(at), "", detail)


def covered(errors: Iterable[FieldError], *, origin: str | None = None) -> Found:
    """Return errors marked as expected from a declared rule too; ``origin`` replaces theirs."""
    if not errors:
        return ()
    return [structs.replace(error, covered=True, origin=error.origin if origin is None else origin) for error in errors]


def merge(handwritten: Found, declared: Found) -> tuple[FieldError, ...]:
    """Return the errors for clients: hand-written ones that no declared rule repeats, then the declared ones.

    A declared rule repeats an error if reason, field and origin agree; an invalid value needs an origin for that. Paths
    of declared rules may be those of v1beta1 and are compared in their v1 form.
    """
    if not handwritten and not declared:
        return ()
    repeated = {(error.type, path, error.origin) for error in declared for path in (error.field, _v1_path(error.field))}
    unique_errors: dict[str, FieldError] = {}
    for error in handwritten:
        has_origin = error.origin or error.type is not Reason.INVALID
        if not (error.covered and has_origin and (error.type, error.field, error.origin) in repeated):
            unique_errors.setdefault(str(error), error)
    return (*unique_errors.values(), *declared)


_FLAT_REQUEST: Final = re.compile(
    r"spec\.devices\.requests\[(\d+)\]\."
    r"(deviceClassName|selectors|allocationMode|count|adminAccess|tolerations|derivedAttributes)"
)
_BASIC_DEVICE: Final = re.compile(r"spec\.devices\[(\d+)\]\.basic\.")


def _v1_path(path: str) -> str:
    nested = _FLAT_REQUEST.sub(r"spec.devices.requests[\1].exactly.\2", path)
    return nested if nested != path else _BASIC_DEVICE.sub(r"spec.devices[\1].", path)


def _show(value: object) -> str:
    if isinstance(value, rendering.Rendered):
        return value
    if isinstance(value, str):
        return quotation.quote(value)
    return rendering.wire(value)
