"""Edits of ResourceClaims in their protobuf form, which keep the bytes of opaque parameters.

kube-apiserver stores opaque parameters as the bytes that a user sent, with their blanks. JSON loses them: a patch makes
the server encode the claim as JSON, the blanks are gone, and the server refuses the write because ``spec`` or
``status.allocation`` is immutable. The protobuf form has the bytes as they are. So a patch that was refused for this
reason is carried out on the protobuf form: fields that the patch does not name are copied without being decoded.

Components patch few fields of a claim, and only these are supported: finalizers, consumers, and the removal of an
allocation and of device statuses. Their numbers are equal in all versions of the API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.client import patches

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_RAW: Final = 2
_METADATA: Final = 1
_STATUS: Final = 3
_IDENTITY: Final = {"uid": 5, "resourceVersion": 6}
_FINALIZERS: Final = 14
_ALLOCATION: Final = 1
_RESERVED_FOR: Final = 2
_DEVICES: Final = 4
_CONSUMER: Final = {"apiGroup": 1, "resource": 3, "name": 4, "uid": 5}

_UNCHANGEABLE: Final = ("field is immutable", "field cannot be modified once set")
"""Ends of the messages about ``spec`` and about ``status.allocation``."""

_VARINT: Final = 0
_FIXED: Final = {1: 8, 5: 4}
_BYTES: Final = 2


class _Field(NamedTuple):
    """One field of a message: its number, its content if it has a length, and all its bytes."""

    number: int
    content: bytes
    encoded: bytes


def is_caused_by_lost_bytes(refusal: errors.InvalidObjectError) -> bool:
    """Return True if a write was refused because it changed fields that the writer did not mean to change."""
    causes = refusal.details.get("causes") or ()
    fields = [str(cause.get("field")) for cause in causes if str(cause.get("message")).endswith(_UNCHANGEABLE)]
    return bool(fields) and all(each.startswith(("spec", "status.allocation")) for each in fields)


def can_edit(patch: patches.Patch) -> bool:
    """Return True if a patch changes nothing but fields that can be edited here."""
    return _content(patch) is not None


def edit(body: bytes, patch: patches.Patch) -> bytes:
    """Return a claim in its envelope, with the changes of a patch.

    If the patch requires a uid or a resource version, the result has these, so that the server compares them.

    Raises:
        errors.DecodeError: the body is no envelope.
        errors.InvalidValueError: the patch changes other fields.
    """
    content = _content(patch)
    if content is None:
        raise errors.InvalidValueError("patch of a claim: changes fields that cannot be edited in protobuf")
    if not body.startswith(_MAGIC):
        raise errors.DecodeError("claim: the answer of the server is not a protobuf message")
    envelope = list(_fields(body[len(_MAGIC) :]))
    claim = next((each.content for each in envelope if each.number == _RAW), b"")
    other_fields = b"".join(each.encoded for each in envelope if each.number != _RAW)
    return _MAGIC + other_fields + _message(_RAW, _edit_claim(claim, content))


def _content(patch: patches.Patch) -> dict[str, Any] | None:
    """Return the content of a patch, or None if it changes other fields."""
    if patch.media_type not in (patches.MERGE, patches.STRATEGIC):
        return None
    content: dict[str, Any] = msgspec.json.decode(patch.data)
    metadata, status = content.get("metadata") or {}, content.get("status") or {}
    removed = {field: status.get(field) for field in ("allocation", "devices")}
    is_known = (
        content.keys() <= {"metadata", "status"}
        and metadata.keys() <= {"uid", "resourceVersion", "finalizers"}
        and status.keys() <= {"reservedFor", *removed}
    )
    return content if is_known and not any(removed.values()) else None


def _edit_claim(claim: bytes, content: Mapping[str, Any]) -> bytes:
    result = []
    for field in _fields(claim):
        if field.number == _METADATA:
            result.append(_message(_METADATA, _edit_metadata(field.content, content.get("metadata") or {})))
        elif field.number == _STATUS:
            result.append(_message(_STATUS, _edit_status(field.content, content.get("status") or {})))
        else:
            result.append(field.encoded)
    return b"".join(result)


def _edit_metadata(message: bytes, changes: Mapping[str, Any]) -> bytes:
    replaced = set()
    added = b""
    if "finalizers" in changes:
        replaced.add(_FINALIZERS)
        added += b"".join(_message(_FINALIZERS, each.encode()) for each in changes["finalizers"] or ())
    for name, number in _IDENTITY.items():
        if name in changes:
            replaced.add(number)
            added += _message(number, changes[name].encode())
    return b"".join(each.encoded for each in _fields(message) if each.number not in replaced) + added


def _edit_status(message: bytes, changes: Mapping[str, Any]) -> bytes:
    removed = {number for name, number in (("allocation", _ALLOCATION), ("devices", _DEVICES)) if name in changes}
    fields_left = [each for each in _fields(message) if each.number not in removed]
    if "reservedFor" not in changes:
        return b"".join(each.encoded for each in fields_left)
    consumers: Sequence[Mapping[str, Any]] = changes["reservedFor"] or ()
    deleted_uids = {each["uid"] for each in consumers if each.get("$patch") == "delete"}
    if deleted_uids:
        fields_left = [
            each for each in fields_left if each.number != _RESERVED_FOR or _uid(each.content) not in deleted_uids
        ]
        return b"".join(each.encoded for each in fields_left)
    other_fields = b"".join(each.encoded for each in fields_left if each.number != _RESERVED_FOR)
    return other_fields + b"".join(_message(_RESERVED_FOR, _consumer(each)) for each in consumers)


def _consumer(reference: Mapping[str, str]) -> bytes:
    return b"".join(_message(number, reference.get(name, "").encode()) for name, number in _CONSUMER.items())


def _uid(consumer: bytes) -> str:
    return next((each.content.decode() for each in _fields(consumer) if each.number == _CONSUMER["uid"]), "")


# The encoding of protobuf


def _fields(message: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(message):
        begin = position
        tag, position = _varint(message, position)
        number, form = tag >> 3, tag & 7
        content_begin = position
        if form == _BYTES:
            length, content_begin = _varint(message, position)
            position = content_begin + length
        elif form == _VARINT:
            _, position = _varint(message, position)
        elif form in _FIXED:
            position += _FIXED[form]
        else:
            raise errors.DecodeError(f"claim: protobuf field {number} has the unknown form {form}")
        if position > len(message):
            raise errors.DecodeError(f"claim: protobuf field {number} ends after its message")
        yield _Field(number, message[content_begin:position], message[begin:position])


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 64:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise errors.DecodeError("claim: a number of the protobuf message is cut off or too long")


def _encode_varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _message(number: int, content: bytes) -> bytes:
    return _encode_varint(number << 3 | _BYTES) + _encode_varint(len(content)) + content
