"""Transitions of ownership: the effect of a write on the entries of ``metadata.managedFields``.

Ownership after a write depends only on ownership before, on the writer, and on the fields that differ; values and times
do not count. Objects of a kind go through the same few writes, so these inputs are made a part
(:mod:`drachma.server.parts`), and equal ones are computed once. The uids and addresses that identify items of some
lists are always new. Only their equality and order count, so each is replaced by its rank.

``server.ownership.managedfields`` calls :func:`compute_create_shares` and :func:`compute_change_shares` first, and
takes a longer way if they return None.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.api.types import model
from drachma.server import parts
from drachma.server.ownership import comparison, fieldset, managers
from drachma.server.ownership.managers import Document, Manager, Owned

_RANKED: Final = 4
"""Identities of a write; with more of them hardly two writes would be alike."""

_TEMPLATED: Final = "spec"
"""Field that new objects have in common to the last value, because most are made from a template."""

_ANY: Final = "*"
"""Stands for all values that differ from those of an empty object."""

_KEPT: Final = frozenset({dict, list, type(None)})
"""Types of values that a likeness keeps. Documents have no values of derived types."""

_IDENTITY: Final = re.compile(rb'("k:\{\\"(?:uid|ip)\\":\\"[^"\\]*)(?=\\"\}")')
"""An encoded identity in a field set, up to the end of its value: so far its order is that of the value."""

_RANK: Final = b"~"
"""Prefix of a rank in place of an identity."""

_BY_UID: Final = rb"k:{\"uid\""
_BY_IP: Final = rb"k:{\"ip\""
_IN_A_NAME: Final = rb"\"k:{"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Share(NamedTuple):
    """Fields of an owner after a write: its entry at ``source`` before, with other ``fields`` unless None.

    ``change`` is the position of the change that it results from, if any: then the owner is the writer, at the time of
    the write. Only such a share can have no source.
    """

    source: int | None
    fields: fieldset.FieldSet | None
    change: int | None = None


class Change(NamedTuple):
    """A change of an object: the differences, the writer, and the fields that such a write cannot change."""

    compared: comparison.Comparison
    manager: Manager
    resets: fieldset.FieldSet


class _Pattern(NamedTuple):
    """A share whose fields have identities: encoded, in pieces, with ranks in between."""

    source: int | None
    pieces: Sequence[bytes | int]
    change: int | None


_Outcome = Sequence[Share | _Pattern]


def compute_create_shares(
    document: Mapping[str, Any], *, kind: managers.Kind, interner: parts.Interner
) -> Sequence[Share] | None:
    """Return the share of the writer of a new object without entries.

    Most new objects equal others except for names and owners. None if an owner reference has no valid uid, if there are
    many of them, or if a list item has no identity.
    """
    uids: list[bytes] = []
    for reference in document["metadata"].get("ownerReferences") or ():
        uid = reference.get("uid")
        identity = _IDENTITY.match(_encode(fieldset.item_element("uid", uid))) if uid else None
        if identity is None:
            return None
        uids.append(identity[0])
    identities = sorted(set(uids)) if uids else uids
    if len(identities) > _RANKED:
        return None
    types = kind.schema
    likeness = _likeness(document, [identities.index(uid) for uid in uids], empty=model.empty(types))
    text = _encode((likeness, kind.resets))
    # Templates have identities, too, and those count by their values.
    if _IN_A_NAME in text or (text.count(_RANK) != len(uids) if uids else _RANK in text):
        return None
    return _shares(interner.read(text).derive(_compute_create, types), identities)


def compute_change_shares(
    entries: Sequence[Document], changes: Sequence[Change], *, api_version: str, interner: parts.Interner
) -> Sequence[Share] | None:
    """Return the shares of an object after changes, in this order; ``entries`` are those before.

    None for changes with many identities, for those that leave too many owners, and if a manager owns fields in another
    version, in which the differences may be others.
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
        return _shares(interner.read(text).derive(_compute_changes), ())
    pieces = _IDENTITY.split(text)
    occurrences = pieces[1::2]
    identities = sorted(set(occurrences))
    # An identity in another form may sort between two others, so their values count.
    count = text.count(_BY_UID) + text.count(_BY_IP)
    if len(occurrences) != count or len(identities) > _RANKED or _IN_A_NAME in text:
        return None
    ranked = [_replace_by_rank(each, rank) for rank, each in enumerate(identities)]
    pieces[1::2] = [ranked[identities.index(each)] for each in occurrences]
    return _shares(interner.read(b"".join(pieces)).derive(_compute_changes), identities)


# New objects


def _likeness(document: Mapping[str, Any], ranks: Sequence[int], *, empty: Mapping[str, Any]) -> Document:
    """Return an object with the same fields as a new one, without values that do not matter for ownership."""
    likeness = _blank(document, empty)
    for name, part in document.items():
        if name == "metadata":
            likeness[name] = _blank_metadata(part, ranks)
        elif name != _TEMPLATED and part.__class__ is dict:
            likeness[name] = _blank(part, (empty[name] or {}) if name in empty else {})
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


def _blank(part: Mapping[str, Any], empty: Mapping[str, Any]) -> Document:
    """Return a part without its values, except for the difference from those of an empty object."""
    return {
        name: value if value.__class__ in _KEPT or (name in empty and value == empty[name]) else _ANY
        for name, value in part.items()
    }


def _compute_create(question: Any, types: model.Object) -> _Outcome | None:
    """Compute the share of a new object; None if list items cannot be identified."""
    likeness, resets = question
    try:
        compared = comparison.compare(model.empty(types), likeness, schema=types)
    except comparison.UnidentifiedError:
        return None
    fields = managers.changed_fields(compared, resets)
    return [_pattern(Share(None, fieldset.encode(fields), 0))] if fields else []


# Changes


def _compute_changes(question: Any) -> _Outcome | None:
    """Compute the shares after changes; None if too many owners result, because times decide which of them stay."""
    entries, changes = question
    before = {Manager(*holder): fields or {} for *holder, fields in entries}
    owners = {each: Owned(fields, each.api_version) for each, fields in before.items()}
    writer_positions: dict[Manager, int] = {}
    for position, (comparisons, manager, resets) in enumerate(changes):
        compared, writer = comparison.Comparison(*comparisons), Manager(*manager)
        managers.settle(owners, managers.change_in_one_version(owners, compared.filtered(resets)))
        if managers.take(owners, compared, manager=writer, api_version=writer.api_version, resets=resets):
            writer_positions[writer] = position
        if len(owners) > managers.MAX_UPDATERS:
            return None
    places = {each: place for place, each in enumerate(before)}
    return [
        _pattern(
            Share(
                places.get(each),
                None if owned.fields is before.get(each) else fieldset.encode(owned.fields),
                writer_positions.get(each),
            )
        )
        for each, owned in owners.items()
    ]


# Identities


def _replace_by_rank(identity: bytes, rank: int) -> bytes:
    """Replace the value of an identity by its rank."""
    return identity[: identity.rindex(b'"') + 1] + b"~%d" % rank


def _pattern(share: Share) -> Share | _Pattern:
    """Return a share as a pattern if it contains ranks."""
    pieces: list[Any] = _IDENTITY.split(_encode(share.fields))
    for place, identity in enumerate(pieces):
        value = identity.rpartition(b'"')[2]
        if place % 2 and value.startswith(_RANK):
            pieces[place] = int(value[len(_RANK) :])
    return share if all(isinstance(piece, bytes) for piece in pieces) else _Pattern(share.source, pieces, share.change)


def _shares(outcome: _Outcome | None, identities: Sequence[bytes]) -> Sequence[Share] | None:
    """Return an outcome with these identities."""
    if outcome is None or not identities:
        return outcome  # type: ignore[return-value]  # Without identities there are no patterns.
    return [share if isinstance(share, Share) else _share(share, identities) for share in outcome]


def _share(pattern: _Pattern, identities: Sequence[bytes]) -> Share:
    pieces = [identities[piece] if isinstance(piece, int) else piece for piece in pattern.pieces]
    return Share(pattern.source, _decode(b"".join(pieces)), pattern.change)
