"""Field selectors: ``fieldSelector=spec.nodeName=n1,status.phase!=Failed``.

Lists, watches and collection deletes use them. The record of a kind names its selectable fields. Malformed selectors
and other fields are refused with upstream's messages.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server.surface import resources, selectable
from drachma.values import quotation

_OPERATORS: Final = ("!=", "==", "=")
_ESCAPABLE: Final = frozenset("\\,=")
_PLAIN: Final = re.compile(r"[A-Za-z0-9./_-]+")
"""Values that JSON writes without escapes."""


class Term(msgspec.Struct, frozen=True):
    """A field, and the value that it must or must not have."""

    field: str
    value: str
    is_negated: bool = False
    special: selectable.Read | None = None
    """Reader of a field that is not simply a text."""

    def matches(self, document: Mapping[str, Any]) -> bool:
        return (self._read(document) == self.value) is not self.is_negated

    def _read(self, document: Mapping[str, Any]) -> str:
        if self.special is not None:
            return self.special(document)
        value = selectable.dig(document, tuple(self.field.split(".")))
        return value if isinstance(value, str) else ""


class FieldSelector(msgspec.Struct, frozen=True):
    """Conjunction of terms; without terms it matches everything."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def matches(self, document: Mapping[str, Any]) -> bool:
        return all(term.matches(document) for term in self.terms)

    def required(self, field: str) -> str | None:
        """Return the value that a field must have, or None."""
        return next((term.value for term in self.terms if term.field == field and not term.is_negated), None)

    def needles(self) -> Iterator[bytes]:
        """Yield texts that the JSON of every matching object contains."""
        for term in self.terms:
            if term.value and not term.is_negated and term.special is None and _PLAIN.fullmatch(term.value):
                yield f'"{term.field.rpartition(".")[2]}":"{term.value}"'.encode()


EVERYTHING: Final = FieldSelector()


def parse(text: str, resource: resources.Resource, *, version: str) -> FieldSelector:
    """Return the selector of a text for one kind. Raises InvalidValueError."""
    if not text:
        return EVERYTHING
    return FieldSelector(tuple(_admit(term, resource, version=version) for term in terms(text)))


def terms(text: str) -> Iterator[Term]:
    """Yield the terms of a text for any kind. Raises InvalidValueError."""
    for part in sorted(_split(text)):
        if not part:
            continue
        match = _operator(part)
        if match is None:
            raise errors.InvalidValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        position, operator = match
        value = _unescape(part[position + len(operator) :])
        yield Term(part[:position], value, is_negated=operator == "!=")


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas; a backslash escapes a comma."""
    start, is_escaped = 0, False
    for position, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == ",":
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _operator(part: str) -> tuple[int, str] | None:
    for position in range(len(part)):
        for operator in _OPERATORS:
            if part.startswith(operator, position):
                return position, operator
    return None


def _unescape(text: str) -> str:
    plain, is_escaped = [], False
    for character in text:
        if is_escaped:
            if character not in _ESCAPABLE:
                raise errors.InvalidValueError(f"invalid field selector: invalid escape sequence: \\{character}")
            plain.append(character)
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character in _ESCAPABLE:
            raise errors.InvalidValueError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    if is_escaped:
        raise errors.InvalidValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(plain)


def _admit(term: Term, resource: resources.Resource, *, version: str) -> Term:
    served = resource.selectable
    field = served.aliases.get(term.field, term.field)
    if not served.fields:
        if field in (selectable.NAME, selectable.NAMESPACE):
            return term
        raise errors.InvalidValueError(
            f'{quotation.quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if field in served.fields:
        return msgspec.structs.replace(term, field=field, special=served.special.get(field))
    kind = f"{resource.api_version(version)}, Kind={resource.kind}"
    raise errors.InvalidValueError(served.unknown(field, kind))
