"""Patches: changes to part of an object, of the four kinds that an API server accepts, and their preconditions.

Contents are plain JSON values, with structs of :mod:`drachma.api` anywhere inside. ``merge`` replaces lists as a whole
and is the usual choice. ``strategic`` merges lists by Kubernetes' keys if the kind has them (core kinds). ``json``
edits by position. ``apply`` states the fields that a manager wants and owns.
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
    """Identity and version that an object must have for a write: its uid, its resource version, or both."""

    uid: str = ""
    resource_version: str = ""

    def __bool__(self) -> bool:
        return bool(self.uid or self.resource_version)

    @property
    def metadata(self) -> dict[str, str]:
        """The preconditions as part of an object's metadata."""
        parts = {"uid": self.uid} if self.uid else {}
        if self.resource_version:
            parts["resourceVersion"] = self.resource_version
        return parts


NONE: Final = Preconditions()


def same(current: meta.Object) -> Preconditions:
    """Require the uid of this object, in any version."""
    return Preconditions(uid=current.metadata.uid)


def unchanged(current: meta.Object) -> Preconditions:
    """Require the uid and the resource version of this object."""
    return Preconditions(uid=current.metadata.uid, resource_version=current.metadata.resource_version)


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch ready to be sent. ``is_forced`` matters for apply only."""

    media_type: str
    data: bytes
    """Content as JSON, which is YAML too."""
    touches_spec: bool
    """True if it changes the part of an object that older versions of a kind write differently."""
    is_idempotent: bool
    is_forced: bool = False


def merge(content: Mapping[str, Any], preconditions: Preconditions = NONE) -> Patch:
    """Set fields, and remove those that are None. Lists are replaced as a whole."""
    return _patch(MERGE, content, preconditions, is_idempotent=True)


def strategic(content: Mapping[str, Any], preconditions: Preconditions = NONE) -> Patch:
    """Like merge(), with lists merged by their keys and Kubernetes' ``$patch`` directives."""
    # A list without a merge key is replaced or, for some primitive ones, joined: repeating that is harmless only
    # if the repetition is refused.
    is_idempotent = bool(preconditions.resource_version)
    return _patch(STRATEGIC, content, preconditions, is_idempotent=is_idempotent)


def json(steps: Sequence[Mapping[str, Any]], preconditions: Preconditions = NONE) -> Patch:
    """Apply the operations of RFC 6902 after tests of the preconditions."""
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
    """State all fields that the client's field manager wants. ``force`` takes over fields that other managers own.

    The client adds apiVersion, kind and name.
    """
    return _patch(APPLY, content, preconditions, is_idempotent=True, is_forced=force)


def plain(content: Any) -> Any:
    """Return content as plain JSON values, including structs inside it, for comparison with a document."""
    return msgspec.json.decode(_encode(content))


def _patch(
    media_type: str,
    content: Mapping[str, Any],
    preconditions: Preconditions,
    *,
    is_idempotent: bool,
    is_forced: bool = False,
) -> Patch:
    # Encoded at once, because the caller may change the content afterwards.
    return Patch(
        media_type=media_type,
        data=_encode(_guarded(content, preconditions) if preconditions else content),
        touches_spec="spec" in content,
        is_idempotent=is_idempotent,
        is_forced=is_forced,
    )


def _guarded(content: Mapping[str, Any], preconditions: Preconditions) -> dict[str, Any]:
    required = preconditions.metadata
    if "metadata" not in content:
        return {**content, "metadata": required}
    metadata: dict[str, Any] = msgspec.to_builtins(content["metadata"], enc_hook=hooks.encode) or {}
    for field, value in required.items():
        if metadata.get(field, value) != value:
            raise errors.InvalidValueError(f"patch: metadata.{field} is {metadata[field]!r}, precondition is {value!r}")
    return {**content, "metadata": {**metadata, **required}}
