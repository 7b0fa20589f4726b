"""Objects to JSON and plain documents, and back. The only place that knows apiVersion, kind and camelCase.

Decoding accepts any served version and returns the v1 form; encoding takes the version as an argument. Errors are
:class:`drachma.errors.DecodeError` and name the object, the path, the expected type and the value. Unknown fields of a
complete kind are ignored, as an API server does by default; :func:`unknown_fields` reports them.
"""

import functools
from typing import Any, TypeVar

import msgspec

from drachma import errors
from drachma.api import conversion, hooks, meta, scheme, shape
from drachma.api.struct import ABSENT_TEXT, Struct

_PartT = TypeVar("_PartT", bound=Struct)
_ViewT = TypeVar("_ViewT")

_ENVELOPE = frozenset({"apiVersion", "kind"})
_encoder = msgspec.json.Encoder(enc_hook=hooks.encode)


class _TypeMeta(Struct, frozen=True, kw_only=True):
    api_version: str = ABSENT_TEXT
    kind: str = ABSENT_TEXT


_type_meta_decoder = msgspec.json.Decoder(_TypeMeta)


def decode_json(data: bytes | str) -> meta.Object:
    """Return the object of a JSON text, in its v1 form."""
    try:
        envelope = _type_meta_decoder.decode(data)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError):
            return decode(msgspec.json.decode(data))
        raise errors.DecodeError(f"not JSON: {error}") from None
    return decode_json_of(data, envelope.api_version, envelope.kind)


def decode_json_of(data: bytes | str, api_version: str, kind: str) -> meta.Object:
    """Return the object of a JSON text whose version and kind are known, in its v1 form."""
    try:
        return conversion.to_memory(_decoder(_kind_of(api_version, kind).shape(api_version)).decode(data))
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError):
            return decode(msgspec.json.decode(data))
        raise errors.DecodeError(f"not JSON: {error}") from None


def decode(document: Any) -> meta.Object:
    """Return the object of a document from JSON or YAML, in its v1 form."""
    api_version, kind = type_of(document)
    model = kind.shape(api_version)
    try:
        return conversion.to_memory(view(document, model))
    except errors.DecodeError as error:
        raise errors.DecodeError(f"{title(document)}: {error}") from None


def view(document: Any, model: type[_ViewT]) -> _ViewT:
    """Return a document or a part of one as a struct with some of its fields; null means absent."""
    try:
        return msgspec.convert(document, model, dec_hook=hooks.decode)
    except msgspec.ValidationError:
        examined = shape.examine(document, model, allowed_names=_ENVELOPE)
        if examined.mismatches:
            raise errors.DecodeError("; ".join(map(str, examined.mismatches))) from None
        return msgspec.convert(examined.document, model, dec_hook=hooks.decode)


def unknown_fields(document: Any) -> tuple[str, ...]:
    """Return the paths of all unknown fields; kinds with partial views have none."""
    api_version, kind = type_of(document)
    if not kind.complete:
        return ()
    return shape.examine(document, kind.shape(api_version), allowed_names=_ENVELOPE).unknown


def encode_json(api_object: meta.Object, *, api_version: str | None = None) -> bytes:
    """Return an object as JSON, in a version or else the newest one."""
    wire, envelope = _wire(api_object, api_version)
    head = msgspec.json.encode(envelope)[:-1]
    body = _encoder.encode(wire)
    return head + b"}" if body == b"{}" else head + b"," + body[1:]


def encode(api_object: meta.Object, *, api_version: str | None = None) -> dict[str, Any]:
    """Return an object as a document of plain dicts, lists and scalars."""
    wire, envelope = _wire(api_object, api_version)
    body = _plain(msgspec.to_builtins(wire, enc_hook=hooks.encode, builtin_types=()))
    return {**envelope, **body}


def encode_part(part: Struct) -> bytes:
    """Return a part of an object in its v1 form as JSON."""
    return _encoder.encode(part)


def decode_part(data: bytes, model: type[_PartT]) -> _PartT:
    """Read a part of an object in its v1 form from JSON that :func:`encode_part` or an API server has made."""
    return msgspec.json.decode(data, type=model, dec_hook=hooks.decode)


def type_meta(document: Any) -> tuple[str, str]:
    """Return a document's apiVersion and kind. Raises DecodeError if they are absent or not texts."""
    if not isinstance(document, dict):
        raise errors.DecodeError(f"expected an object, found {shape.describe(document)}")
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if not isinstance(value, str) or not value:
            description = "nothing" if value is None or value == "" else shape.describe(value)
            raise errors.DecodeError(f"{field}: expected a non-empty string, found {description}")
    return document["apiVersion"], document["kind"]


def type_of(document: Any) -> tuple[str, scheme.Kind]:
    """Return a document's apiVersion and kind. Raises DecodeError if they are absent, not texts or unknown."""
    api_version, kind = type_meta(document)
    return api_version, _kind_of(api_version, kind)


def title(document: Any) -> str:
    """Return the name of a document for messages: kind, namespace and name, as far as they are present."""
    if not isinstance(document, dict):
        return "document"
    metadata = document.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    parts = [names.get("namespace"), names.get("name") or names.get("generateName")]
    name = "/".join(part for part in parts if isinstance(part, str) and part)
    kind = document.get("kind")
    return f"{kind if isinstance(kind, str) and kind else 'document'} {name or '(unnamed)'}"


def _kind_of(api_version: str, name: str) -> scheme.Kind:
    for field, value in (("apiVersion", api_version), ("kind", name)):
        if not value:
            raise errors.DecodeError(f"{field}: expected a non-empty string, found nothing")
    return scheme.find(api_version, name)


@functools.cache
def _decoder(model: type[meta.Object]) -> msgspec.json.Decoder[meta.Object]:
    return msgspec.json.Decoder(model, dec_hook=hooks.decode)


def _wire(api_object: meta.Object, api_version: str | None) -> tuple[meta.Object, dict[str, str]]:
    kind = scheme.of(type(api_object))
    version = api_version or kind.api_versions[0]
    return conversion.to_wire(api_object, version), {"apiVersion": version, "kind": kind.name}


def _plain(value: Any) -> Any:
    """Return a value with lists instead of tuples, as writers and comparisons expect."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
