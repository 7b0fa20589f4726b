"""Field selectors (``fieldSelector=spec.nodeName=n1,status.phase!=Failed``) and which fields a kind can be selected by.

Lists, watches and collection deletes use them. What cannot be parsed, and a field that a kind has no selector for,
is refused with upstream's message.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server.surface import resources
from drachma.values import quotation

_OPERATORS: Final = ("!=", "==", "=")
_ESCAPABLE: Final = frozenset("\\,=")
_PLAIN: Final = re.compile(r"[A-Za-z0-9./_-]+")
"""Values that JSON writes as they are."""


class Term(msgspec.Struct, frozen=True):
    """One field and the value that it must, or must not, have."""

    field: str
    value: str
    is_negated: bool = False


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; none at all selects everything."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def matches(self, document: Mapping[str, Any]) -> bool:
        return all((_read(document, term.field) == term.value) is not term.is_negated for term in self.terms)

    def required(self, field: str) -> str | None:
        """The one value that a field must have, where there is one."""
        return next((term.value for term in self.terms if term.field == field and not term.is_negated), None)

    def needles(self) -> Iterator[bytes]:
        """Texts that the JSON of every object that matches has somewhere."""
        for term in self.terms:
            if term.value and not term.is_negated and term.field not in _SPECIAL and _PLAIN.fullmatch(term.value):
                yield f'"{term.field.rpartition(".")[2]}":"{term.value}"'.encode()


EVERYTHING: Final = FieldSelector()


def parse(text: str, resource: resources.Resource, *, version: str) -> FieldSelector:
    """The selector that a text stands for, for one kind; InvalidValueError where it stands for none."""
    if not text:
        return EVERYTHING
    return FieldSelector(tuple(_admit(term, resource, version=version) for term in _terms(text)))


def _terms(text: str) -> Iterator[Term]:
    for part in sorted(_split(text)):
        if not part:
            continue
        found = _operator(part)
        if found is None:
            raise errors.InvalidValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        position, operator = found
        value = _unescape(part[position + len(operator) :])
        yield Term(part[:position], value, is_negated=operator == "!=")


def _split(text: str) -> Iterator[str]:
    """The parts between commas; a comma behind a backslash belongs to its part."""
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


# Which fields there are

_NAME: Final = "metadata.name"
_NAMESPACE: Final = "metadata.namespace"

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "resource.k8s.io/resourceslices": frozenset({_NAME, "spec.nodeName", "spec.driver", "spec.pool.name"}),
    "pods": frozenset(
        {
            _NAME,
            _NAMESPACE,
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        }
    ),
    "nodes": frozenset({_NAME, "spec.unschedulable"}),
    "namespaces": frozenset({_NAME, "status.phase"}),
    "secrets": frozenset({_NAME, _NAMESPACE, "type"}),
    "events": frozenset(
        {
            _NAME,
            _NAMESPACE,
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    "batch/jobs": frozenset({_NAME, _NAMESPACE, "status.successful"}),
}
"""Kinds with selectable fields of their own; all others are selected by name and namespace."""

_RENAMED: Final[Mapping[tuple[str, str], str]] = {("pods", "spec.host"): "spec.nodeName"}


def _admit(term: Term, resource: resources.Resource, *, version: str) -> Term:
    field = _RENAMED.get((resource.key, term.field), term.field)
    fields = _FIELDS.get(resource.key)
    if fields is None:
        if field in (_NAME, _NAMESPACE):
            return term
        raise errors.InvalidValueError(
            f'{quotation.quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    if field in fields:
        return msgspec.structs.replace(term, field=field)
    if resource.group:
        kind = f"{resource.api_version(version)}, Kind={resource.kind}"
        unknown = f"field label not supported for {kind}: {field}"
    else:
        unknown = f"field label not supported: {field}"
    raise errors.InvalidValueError(
        f"field label {quotation.quote(field)} not supported for Job" if resource.key == "batch/jobs" else unknown
    )


# How they are read

_FALSE: Final = "false"


def _pod_ips(document: Mapping[str, Any]) -> str:
    addresses = _dig(document, ("status", "podIPs"))
    return addresses[0].get("ip", "") if isinstance(addresses, list) and addresses else ""


def _event_source(document: Mapping[str, Any]) -> str:
    return _dig(document, ("source", "component")) or document.get("reportingComponent") or ""


_SPECIAL: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "spec.hostNetwork": lambda document: _boolean(_dig(document, ("spec", "hostNetwork"))),
    "spec.unschedulable": lambda document: _boolean(_dig(document, ("spec", "unschedulable"))),
    "status.podIPs": _pod_ips,
    "status.successful": lambda document: str(_dig(document, ("status", "succeeded")) or 0),
    "source": _event_source,
}


def _read(document: Mapping[str, Any], field: str) -> str:
    special = _SPECIAL.get(field)
    if special is not None:
        return special(document)
    value = _dig(document, tuple(field.split(".")))
    return value if isinstance(value, str) else ""


def _dig(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _boolean(value: Any) -> str:
    return "true" if value is True else _FALSE
