"""Patches: changes to part of an object, of the four kinds that an API server takes, and their preconditions.

Contents are plain JSON values, or structs of :mod:`drachma.api` anywhere inside. ``merge`` replaces lists whole and is
the usual choice; ``strategic`` merges lists by Kubernetes' keys where the kind has them (core kinds); ``json`` edits by
position; ``apply`` states the fields that a manager wants and owns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, meta

JSON: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode


class Preconditions(msgspec.Struct, frozen=True):
    """What an object must be for a write to happen: this very one by its uid, this very version of it, or both."""

    uid: str = ""
    resource_version: str = ""

    def __bool__(self) -> bool:
        return bool(self.uid or self.resource_version)

    @property
    def metadata(self) -> dict[str, str]:
        """As part of an object's metadata."""
        parts = {"uid": self.uid} if self.uid else {}
        if self.resource_version:
            parts["resourceVersion"] = self.resource_version
        return parts


NONE: Final = Preconditions()


def same(known: meta.Object) -> Preconditions:
    """The object that has this one's uid, in whatever version."""
    return Preconditions(uid=known.metadata.uid)


def unchanged(known: meta.Object) -> Preconditions:
    """The object exactly as it is known."""
    return Preconditions(uid=known.metadata.uid, resource_version=known.metadata.resource_version)


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch ready to be sent. ``is_forced`` only says something about apply."""

    media_type: str
    data: bytes
    """Its content as JSON, which is YAML too."""
    touches_spec: bool
    """Whether it changes the part of an object that is written differently in older versions of a kind."""
    is_idempotent: bool
    is_forced: bool = False


def merge(content: Mapping[str, Any], preconditions: Preconditions = NONE) -> Patch:
    """Fields to set, with None for those to remove; lists are replaced whole."""
    return _patch(MERGE, content, preconditions, is_idempotent=True)


def strategic(content: Mapping[str, Any], preconditions: Preconditions = NONE) -> Patch:
    """The same with lists merged by their keys, and Kubernetes' ``$patch`` directives."""
    # A list without a merge key is replaced or, for some primitive ones, joined: repeating that is harmless only
    # if the repetition is refused.
    is_idempotent = bool(preconditions.resource_version)
    return _patch(STRATEGIC, content, preconditions, is_idempotent=is_idempotent)


def json(steps: Sequence[Mapping[str, Any]], preconditions: Preconditions = NONE) -> Patch:
    """The operations of RFC 6902, after tests of the preconditions."""
    tests = [
        {"op": "test", "path": f"/metadata/{field}", "value": value} for field, value in preconditions.metadata.items()
    ]
    return Patch(
        media_type=JSON,
        data=_encode([*tests, *steps]),
        touches_spec=any(str(step.get("path", "")).split("/")[1:2] == ["spec"] for step in steps),
        is_idempotent=bool(preconditions.resource_version),
    )


def apply(content: Mapping[str, Any], preconditions: Preconditions = NONE, *, force: bool = False) -> Patch:
    """All fields that the client's field manager wants; ``force`` takes over those that others own.

    The client adds apiVersion, kind and name.
    """
    return _patch(APPLY, content, preconditions, is_idempotent=True, is_forced=force)


def plain(content: Any) -> Any:
    """Content as JSON values, structs inside of it too: what is compared with a document."""
    return msgspec.json.decode(_encode(content))


def _patch(
    media_type: str,
    content: Mapping[str, Any],
    preconditions: Preconditions,
    *,
    is_idempotent: bool,
    is_forced: bool = False,
) -> Patch:
    # Encoded at once: whoever made the content may go on changing it.
    return Patch(
        media_type=media_type,
        data=_encode(_guarded(content, preconditions) if preconditions else content),
        touches_spec="spec" in content,
        is_idempotent=is_idempotent,
        is_forced=is_forced,
    )


def _guarded(content: Mapping[str, Any], preconditions: Preconditions) -> dict[str, Any]:
    wanted = preconditions.metadata
    if "metadata" not in content:
        return {**content, "metadata": wanted}
    metadata: dict[str, Any] = msgspec.to_builtins(content["metadata"], enc_hook=hooks.encode) or {}
    for field, value in wanted.items():
        if metadata.get(field, value) != value:
            raise errors.InvalidValueError(f"patch: metadata.{field} is {metadata[field]!r}, precondition is {value!r}")
    return {**content, "metadata": {**metadata, **wanted}}
