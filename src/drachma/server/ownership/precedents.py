"""What like writes did to field ownership before, so that it need not be worked out again.

Who owns what after a write only depends on who owned what before, on who writes, and on which fields differ; values and
times do not count. Objects of a kind go through the same few writes, so there are few outcomes, and
``server.ownership.managedfields`` asks here first. What is always new are the uids and addresses by which some lists
know their items. Only which of them are equal and how they are ordered counts, so each is replaced by its rank.

Public: ``case(entries, compared, *, manager, kind)`` and ``case_of_new(document, ...)`` are what writes have in common
that end alike, ``find(case)`` is the outcome that is known for it, ``settle(case, outcome)`` makes one known.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.server import schema
from drachma.server.ownership import comparison, fieldset, managers
from drachma.server.ownership.managers import Document

_REMEMBERED: Final = 2048
_RANKED: Final = 4
"""How many identities a case may have; with more of them hardly two cases would be alike."""

_ENVELOPE: Final = frozenset({"kind", "apiVersion", "metadata"})
"""What every object has; nobody owns the first two."""

_TEMPLATED: Final = "spec"
"""The part that new objects have in common to the last value, as most are made from a template."""

_LARGE: Final = 4096
"""From how many bytes on a new object is taken to be unlike any other."""

_IDENTITY: Final = re.compile(rb'("k:\{\\"(?:uid|ip)\\":\\"[^"\\]*)(?=\\"\}")')
"""An identity in a set of fields as it is written, up to the end of its value: so far it is ordered as its value is."""

_BY_UID: Final = rb"k:{\"uid\""
_BY_IP: Final = rb"k:{\"ip\""
_IN_A_NAME: Final = rb"\"k:{"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Share(NamedTuple):
    """What an owner has after a write: the entry it had at ``source`` before, with other ``fields`` unless None.

    ``is_written`` says that it is the writer's, with the time of the write; only that can be without a source.
    """

    source: int | None
    fields: fieldset.FieldSet | None
    is_written: bool


Outcome: TypeAlias = Sequence[Share]


class Case(NamedTuple):
    """``likeness`` is equal for writes with the same outcome but for ``identities``, which are in order."""

    likeness: tuple[Any, ...]
    identities: Sequence[bytes]


class _Pattern(NamedTuple):
    """A share whose fields have identities: as they are written, but in parts, with ranks in between."""

    source: int | None
    parts: Sequence[Any]
    is_written: bool


_known: dict[tuple[Any, ...], Sequence[Share | _Pattern]] = {}


def case_of_new(document: Mapping[str, Any], *, manager: managers.Manager, kind: managers.Kind) -> Case | None:
    """The case of a new object without entries: most are like others but for their names and who owns them.

    None for one that is too large to be like others, or that nobody can tell the owners of.
    """
    metadata = document["metadata"]
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    names = list(metadata), labels and list(labels), annotations and list(annotations), metadata.get("finalizers")
    empty = schema.empty(kind.schema)
    form = {
        name: part if name == _TEMPLATED else _form(part, empty.get(name))
        for name, part in document.items()
        if name not in _ENVELOPE
    }
    text = _encode((names, form, kind.resets))
    if len(text) > _LARGE or _IN_A_NAME in text:
        return None
    found: list[bytes] = []
    for reference in metadata.get("ownerReferences") or ():
        uid = reference.get("uid")
        identity = _IDENTITY.match(_encode(fieldset.named_item("uid", uid))) if uid else None
        if identity is None:
            return None
        found.append(identity[1])
    identities = sorted(set(found))
    if len(identities) > _RANKED:
        return None
    return Case((manager, kind.name, text, *map(identities.index, found)), identities)


def _form(part: Any, empty: Any) -> Any:
    """A part without the values near its top; only whether a value is that of the empty object counts."""
    if not isinstance(part, dict):
        return _mark(part, empty)
    if not isinstance(empty, dict):
        empty = {}
    return {name: _mark(value, empty.get(name)) for name, value in part.items()}


def _mark(value: Any, empty: Any) -> Any:
    if isinstance(value, dict | list) or value is None:
        return value
    return "" if value != empty else f"={value!r}"


def case(
    entries: Sequence[Document], compared: comparison.Comparison, *, manager: managers.Manager, kind: managers.Kind
) -> Case | None:
    """The case of a write by ``manager`` to an object with these entries; None for one unlike all others.

    That is one with many identities, or one where somebody owns fields in another version, in which the documents
    differ in another way.
    """
    names: list[str] = []
    for entry in entries:
        if entry["apiVersion"] != kind.api_version:
            return None
        names += entry.get("manager", ""), entry["operation"], entry.get("subresource", "")
    text = _encode(([entry.get("fieldsV1") for entry in entries], compared, kind.resets))
    count = text.count(_BY_UID) + text.count(_BY_IP)
    if not count:
        return Case((manager, *names, text), ())
    parts: list[Any] = _IDENTITY.split(text)
    found = parts[1::2]
    identities = sorted(set(found))
    # An identity in another form may stand between two others, which makes their values count.
    if len(found) != count or len(identities) > _RANKED or _IN_A_NAME in text:
        return None
    parts[1::2] = map(identities.index, found)
    return Case((manager, *names, *parts), identities)


def find(known: Case) -> Outcome | None:
    """What such a write led to before, with the identities of this one."""
    outcome = _known.get(known.likeness)
    if outcome is None:
        return None
    return [share if isinstance(share, Share) else _share(share, known.identities) for share in outcome]


def settle(new: Case, outcome: Outcome) -> None:
    """Remembers what a write led to."""
    if len(_known) >= _REMEMBERED:
        _known.clear()
    _known[new.likeness] = [_pattern(share, new.identities) for share in outcome]


def _pattern(share: Share, identities: Sequence[bytes]) -> Share | _Pattern:
    parts: list[Any] = _IDENTITY.split(_encode(share.fields))
    if not identities or len(parts) == 1:
        return share
    parts[1::2] = [identities.index(part) if part in identities else part for part in parts[1::2]]
    return _Pattern(share.source, parts, share.is_written)


def _share(pattern: _Pattern, identities: Sequence[bytes]) -> Share:
    parts = [identities[part] if type(part) is int else part for part in pattern.parts]
    return Share(pattern.source, _decode(b"".join(parts)), pattern.is_written)
