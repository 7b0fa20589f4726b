"""Rules for config maps and secrets: keys that can be file names, a limit for all, and no change once immutable."""

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, Path
from drachma.validation.podspec import choices
from drachma.values import names

MOST_BYTES: Final = 1024 * 1024

_NOWHERE: Final = Path("[]")
"""How upstream prints a path without a name."""
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_REQUIRED: Final = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON: Final = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_IMMUTABLE: Final = "field is immutable when `immutable` is set"


def check_config_map(content: Mapping[str, Any]) -> Errors:
    """A config map."""
    data, binary = content.get("data") or {}, content.get("binaryData") or {}
    for key in sorted(data):
        yield from _key(key, Path("data"))
        if key in binary:
            yield fielderror.invalid(Path("data").key(key), key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        yield from _key(key, Path("binaryData"))
    size = sum(map(names.byte_length, data.values())) + sum(map(_size, binary.values()))
    if size > MOST_BYTES:
        yield fielderror.too_long(_NOWHERE, MOST_BYTES)


def check_secret(content: Mapping[str, Any], annotations: Mapping[str, str]) -> Errors:
    """A secret, which has what its type needs."""
    data, kind, at = content.get("data") or {}, content.get("type", ""), Path("data")
    for key in sorted(data):
        yield from _key(key, at)
    if sum(map(_size, data.values())) > MOST_BYTES:
        yield fielderror.too_long(at, MOST_BYTES)
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield fielderror.required(METADATA.child("annotations").key(_ACCOUNT))
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield fielderror.required(at.key("username"))
        yield fielderror.required(at.key("password"))
    elif kind in _JSON:
        yield from _json(data, at.key(_JSON[kind]), key=_JSON[kind])
    for key in _REQUIRED.get(kind, ()):
        if key not in data or (not data[key] and kind == "kubernetes.io/ssh-auth"):
            yield fielderror.required(at.key(key))


def check_update(content: Mapping[str, Any], old: Mapping[str, Any], *, fields: tuple[str, ...]) -> Errors:
    """What was made immutable stays as it is."""
    if not old.get("immutable"):
        return
    if not content.get("immutable"):
        yield fielderror.forbidden(Path("immutable"), _IMMUTABLE)
    for field in fields:
        if (content.get(field) or {}) != (old.get(field) or {}):
            yield fielderror.forbidden(Path(field), _IMMUTABLE)


def _key(key: str, at: Path) -> Errors:
    yield from fielderror.problems(at.key(key), key, choices.config_key_problems(key))


def _size(encoded: str) -> int:
    return len(encoded) // 4 * 3 - encoded.endswith("=") - encoded.endswith("==")


def _json(data: Mapping[str, str], at: Path, *, key: str) -> Errors:
    if key not in data:
        yield fielderror.required(at)
        return
    text = base64.b64decode(data[key])
    try:
        is_object = isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        is_object = False
    if not is_object:
        detail = _problem(text.decode(errors="replace"))
        yield fielderror.invalid(at, "<secret contents redacted>", detail)


def _problem(text: str) -> str:
    """Go's words for what cannot be the beginning of an object; the rest of a malformed text has but one."""
    first = text.lstrip()[:1]
    if not first:
        return "unexpected end of JSON input"
    return "invalid JSON" if first == "{" else f"invalid character '{first}' looking for beginning of value"
