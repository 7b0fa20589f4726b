"""Transitions of ownership: what a write does to the entries of ``metadata.managedFields``.

Who owns what after a write only depends on who owned what before, on who writes, and on which fields differ; values and
times do not count. Objects of a kind go through the same few writes, so what they depend on is made a part
(:mod:`drachma.server.parts`), and those that are alike are worked out once. What is always new are the uids and
addresses by which some lists know their items. Only which of them are equal and how they are ordered counts, so each is
replaced by its rank among them.

``server.ownership.managedfields`` asks :func:`of_new` and :func:`of_changes` first, and goes a longer way where neither
can tell. Public: these two, ``Change`` and ``Share``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.server import parts, schema
from drachma.server.ownership import comparison, fieldset, managers
from drachma.server.ownership.managers import Document, Manager, Owned

_RANKED: Final = 4
"""How many identities a write may have; with more of them hardly two writes would be alike."""

_TEMPLATED: Final = "spec"
"""The part that new objects have in common to the last value, as most are made from a template."""

_ANY: Final = "*"
"""Stands for all values that are not those of an empty object."""

_KEPT: Final = frozenset({dict, list, type(None)})
"""Types of values that a likeness has as they are. Values of documents are of no derived types."""

_IDENTITY: Final = re.compile(rb'("k:\{\\"(?:uid|ip)\\":\\"[^"\\]*)(?=\\"\}")')
"""An identity in a set of fields as it is written, up to the end of its value: so far it is ordered as its value is."""

_RANK: Final = b"~"
"""Begins a rank where an identity was."""

_BY_UID: Final = rb"k:{\"uid\""
_BY_IP: Final = rb"k:{\"ip\""
_IN_A_NAME: Final = rb"\"k:{"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Share(NamedTuple):
    """What an owner has after a write: the entry it had at ``source`` before, with other ``fields`` unless None.

    ``change`` says which change of the write made it so, if one did: then it is the writer's, with the time of the
    write. Only such a one can be without a source.
    """

    source: int | None
    fields: fieldset.FieldSet | None
    change: int | None = None


class Change(NamedTuple):
    """A change of an object: in what it differs then, who made it, and which fields one like it cannot change."""

    compared: comparison.Comparison
    manager: Manager
    resets: fieldset.FieldSet


class _Pattern(NamedTuple):
    """A share whose fields have identities: as they are written, but in pieces, with ranks in between."""

    source: int | None
    pieces: Sequence[bytes | int]
    change: int | None


_Outcome = Sequence[Share | _Pattern]


def of_new(document: Mapping[str, Any], *, kind: managers.Kind, interner: parts.Interner) -> Sequence[Share] | None:
    """What the writer of a new object without entries has then: most are like others but for names and owners.

    None where a reference to an owner has no uid or an odd one, where there are many of them, and where an item of a
    list has no identity.
    """
    uids: list[bytes] = []
    for reference in document["metadata"].get("ownerReferences") or ():
        uid = reference.get("uid")
        identity = _IDENTITY.match(_encode(fieldset.named_item("uid", uid))) if uid else None
        if identity is None:
            return None
        uids.append(identity[0])
    identities = sorted(set(uids)) if uids else uids
    if len(identities) > _RANKED:
        return None
    types = kind.schema
    likeness = _likeness(document, [identities.index(uid) for uid in uids], empty=schema.empty(types))
    text = _encode((likeness, kind.resets))
    # Templates have identities, too, and those count by their values.
    if _IN_A_NAME in text or (text.count(_RANK) != len(uids) if uids else _RANK in text):
        return None
    return _shares(interner.read(text).derive(_of_new, types), identities)


def of_changes(
    entries: Sequence[Document], changes: Sequence[Change], *, api_version: str, interner: parts.Interner
) -> Sequence[Share] | None:
    """What the owners of an object have once it is changed, in this order; ``entries`` are from before.

    None for changes with many identities, for those after which there are too many owners, and where somebody owns
    fields in another version, in which the documents differ in another way.
    """
    owners = []
    for entry in entries:
        if entry["apiVersion"] != api_version:
            return None
        operation = entry["operation"]
        owners.append(
            (
                entry["manager"] if "manager" in entry else "",  # noqa: SIM401 - asked at every write
                operation,
                "" if operation == managers.APPLY else api_version,
                entry["subresource"] if "subresource" in entry else "",  # noqa: SIM401
                entry["fieldsV1"] if "fieldsV1" in entry else None,  # noqa: SIM401
            )
        )
    text = _encode((owners, changes))
    if _BY_UID not in text and _BY_IP not in text:
        return _shares(interner.read(text).derive(_of_changes), ())
    pieces = _IDENTITY.split(text)
    occurrences = pieces[1::2]
    identities = sorted(set(occurrences))
    # An identity in another form may stand between two others, which makes their values count.
    count = text.count(_BY_UID) + text.count(_BY_IP)
    if len(occurrences) != count or len(identities) > _RANKED or _IN_A_NAME in text:
        return None
    ranked = [_ranked(each, rank) for rank, each in enumerate(identities)]
    pieces[1::2] = [ranked[identities.index(each)] for each in occurrences]
    return _shares(interner.read(b"".join(pieces)).derive(_of_changes), identities)


# New objects


def _likeness(document: Mapping[str, Any], ranks: Sequence[int], *, empty: Mapping[str, Any]) -> Document:
    """An object with the same fields as a new one, but without the values that do not decide who owns which."""
    likeness = _blanked(document, empty)
    for name, part in document.items():
        if name == "metadata":
            likeness[name] = _blank_metadata(part, ranks)
        elif name != _TEMPLATED and part.__class__ is dict:
            likeness[name] = _blanked(part, (empty[name] or {}) if name in empty else {})
    return likeness


def _blank_metadata(metadata: Mapping[str, Any], ranks: Sequence[int]) -> Document:
    blank: Document = {
        name: dict.fromkeys(part, _ANY) if part.__class__ is dict else _ANY for name, part in metadata.items()
    }
    if ranks:
        blank["ownerReferences"] = [{"uid": f"~{rank}"} for rank in ranks]
    if "finalizers" in metadata:
        blank["finalizers"] = metadata["finalizers"]
    return blank


def _blanked(part: Mapping[str, Any], empty: Mapping[str, Any]) -> Document:
    """A part without its own values; only whether one is that of the empty object counts."""
    return {
        name: value if value.__class__ in _KEPT or (name in empty and value == empty[name]) else _ANY
        for name, value in part.items()
    }


def _of_new(question: Any, types: schema.Object) -> _Outcome | None:
    """None where something in the object cannot be told from something else."""
    likeness, resets = question
    try:
        compared = comparison.compare(schema.empty(types), likeness, schema=types)
    except comparison.UnidentifiedError:
        return None
    fields = managers.taken(compared, resets)
    return [_pattern(Share(None, fieldset.encode(fields), 0))] if fields else []


# Changes


def _of_changes(question: Any) -> _Outcome | None:
    """None where there are too many owners then: which of them stay depends on when they wrote."""
    entries, changes = question
    before = {Manager(*holder): fields or {} for *holder, fields in entries}
    owners = {each: Owned(fields, each.api_version) for each, fields in before.items()}
    written: dict[Manager, int] = {}
    for position, (comparisons, manager, resets) in enumerate(changes):
        compared, writer = comparison.Comparison(*comparisons), Manager(*manager)
        managers.settle(owners, managers.change_in_one_version(owners, compared.filtered(resets)))
        if managers.take(owners, compared, manager=writer, api_version=writer.api_version, resets=resets):
            written[writer] = position
        if len(owners) > managers.MAX_UPDATERS:
            return None
    places = {each: place for place, each in enumerate(before)}
    return [
        _pattern(
            Share(
                places.get(each),
                None if owned.fields is before.get(each) else fieldset.encode(owned.fields),
                written.get(each),
            )
        )
        for each, owned in owners.items()
    ]


# Identities


def _ranked(identity: bytes, rank: int) -> bytes:
    """An identity with its rank for a value."""
    return identity[: identity.rindex(b'"') + 1] + b"~%d" % rank


def _pattern(share: Share) -> Share | _Pattern:
    """A share with room for identities, where it has ranks of some."""
    pieces: list[Any] = _IDENTITY.split(_encode(share.fields))
    for place, identity in enumerate(pieces):
        value = identity.rpartition(b'"')[2]
        if place % 2 and value.startswith(_RANK):
            pieces[place] = int(value[len(_RANK) :])
    return share if all(isinstance(piece, bytes) for piece in pieces) else _Pattern(share.source, pieces, share.change)


def _shares(outcome: _Outcome | None, identities: Sequence[bytes]) -> Sequence[Share] | None:
    """An outcome for these identities."""
    if outcome is None or not identities:
        return outcome  # type: ignore[return-value]  # Without identities there are no patterns.
    return [share if isinstance(share, Share) else _share(share, identities) for share in outcome]


def _share(pattern: _Pattern, identities: Sequence[bytes]) -> Share:
    pieces = [identities[piece] if isinstance(piece, int) else piece for piece in pattern.pieces]
    return Share(pattern.source, _decode(b"".join(pieces)), pattern.change)
