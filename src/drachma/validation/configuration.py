"""Rules for ConfigMap and Secret."""

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.validation import constraints, fielderror, kindrules, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, Document, Path
from drachma.values import names

MOST_BYTES: Final = 1024 * 1024

_UNNAMED: Final = Path("[]")
"""Path without a name, as upstream prints it."""

_ACCOUNT: Final = "kubernetes.io/service-account.name"
_REQUIRED_KEYS: Final = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_KEYS: Final = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


def _check_config_map(content: Document, at: Path) -> Errors:
    data, binary = content.get("data") or {}, content.get("binaryData") or {}
    for key in sorted(data):
        yield from _key(key, at.child("data"))
        if key in binary:
            yield fielderror.invalid(at.child("data").key(key), key, "duplicate of key present in binaryData")
    yield from _keys(binary, at.child("binaryData"))
    if sum(map(names.byte_length, data.values())) + sum(map(_size, binary.values())) > MOST_BYTES:
        yield fielderror.too_long(_UNNAMED, MOST_BYTES)


def _keys(data: Mapping[str, str], at: Path) -> Errors:
    for key in sorted(data):
        yield from _key(key, at)


def _key(key: str, at: Path) -> Errors:
    yield from fielderror.problems(at.key(key), key, constraints.config_key_problems(key))


def _size(encoded: str) -> int:
    """Return the number of bytes that a base64 text encodes."""
    return len(encoded) // 4 * 3 - encoded.endswith("=") - encoded.endswith("==")


def _check_size(content: Document, at: Path) -> Errors:
    if sum(map(_size, (content.get("data") or {}).values())) > MOST_BYTES:
        yield fielderror.too_long(at.child("data"), MOST_BYTES)


def _check_type(content: Document, at: Path, metadata: Document) -> Errors:
    """Check that a secret has the keys that its type needs."""
    data, kind, place = content.get("data") or {}, content.get("type", ""), at.child("data")
    if kind == "kubernetes.io/service-account-token" and not (metadata.get("annotations") or {}).get(_ACCOUNT):
        yield fielderror.required(METADATA.child("annotations").key(_ACCOUNT))
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield fielderror.required(place.key("username"))
        yield fielderror.required(place.key("password"))
    elif kind in _JSON_KEYS:
        yield from _json(data.get(_JSON_KEYS[kind]), place.key(_JSON_KEYS[kind]))
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data or (not data[key] and kind == "kubernetes.io/ssh-auth"):
            yield fielderror.required(place.key(key))


def _json(encoded: str | None, at: Path) -> Errors:
    if encoded is None:
        yield fielderror.required(at)
        return
    text = base64.b64decode(encoded)
    try:
        is_object = isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        is_object = False
    if not is_object:
        detail = _json_problem(text.decode(errors="replace"))
        yield fielderror.invalid(at, "<secret contents redacted>", detail)


def _json_problem(text: str) -> str:
    """Return Go's message for a text that does not start an object; other malformed texts have one message."""
    first = text.lstrip()[:1]
    if not first:
        return "unexpected end of JSON input"
    return "invalid JSON" if first == "{" else f"invalid character '{first}' looking for beginning of value"


_TYPES: Final = rulenotation.load("configuration", globals())
KINDS: Final = kindrules.read(_TYPES)
