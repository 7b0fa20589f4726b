"""Lists: objects at a revision, in pages if the client asks for them.

The list and deletecollection verbs call it, and watches that start with the existing objects. Versions and tokens have
upstream's meaning and messages.
"""

import asyncio
import base64
import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.decoding import jsonsyntax
from drachma.server.reads import selection
from drachma.server.reads.reader import Reader
from drachma.server.schema import decodeerrors
from drachma.server.surface import resources
from drachma.store import protocol, record
from drachma.values import names, quotation

FRESHNESS_SECONDS: Final = 3.0
"""Time that a read waits for a revision that the store has not reached."""

_EXPIRED: Final = "The resourceVersion for the provided list is too old."
_EXPIRED_TOKEN: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_TOKEN_VERSION: Final = "meta.k8s.io/v1"
_NEWEST: Final = -1

_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]*")
_TYPES: Final = {"v": "string", "rv": "int64", "start": "string"}


class Token(NamedTuple):
    """Content of a token, in upstream's form."""

    v: str = ""
    rv: int = 0
    start: str = ""


class Listed(NamedTuple):
    """A list or a page of one. ``token`` continues it; ``remaining`` is None if the number is not known."""

    records: Sequence[record.Record]
    revision: int
    token: str
    remaining: int | None


class Scope(NamedTuple):
    """The collection of a request; the namespace is None for all namespaces."""

    resource: resources.Resource
    namespace: str | None


async def read(store: Reader, scope: Scope, list_options: options.ListOptions) -> Listed:
    """Return the requested objects."""
    after: record.Key | None = None
    revision: int | None = None
    if list_options.continue_token:
        after, revision = _resume(scope, list_options)
    else:
        revision = await _revision(store, list_options)
    try:
        page = _page(store, scope, list_options, revision=revision, after=after)
    except errors.GoneError:
        if list_options.continue_token:
            assert after is not None, "a token has a start"
            raise _expired_token(after, scope) from None
        raise status.expired(_EXPIRED) from None
    except errors.FutureRevisionError:
        raise status.future_version(revision or 0, current=store.revision) from None
    token = encode_token(page.after, page.revision, scope=scope) if page.after is not None else ""
    return Listed(page.records, page.revision, token, page.remaining if token else None)


def parse_revision(text: str) -> int:
    """Return a resourceVersion as a number; InvalidValueError in Go's words."""
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdigit():
        raise errors.InvalidValueError(f"strconv.ParseUint: parsing {quotation.quote(text)}: invalid syntax")
    if len(text) > 20 or int(text) >= 2**64:
        raise errors.InvalidValueError(f"strconv.ParseUint: parsing {quotation.quote(text)}: value out of range")
    return int(text)


async def wait_for(store: Reader, revision: int) -> None:
    """Wait until the store has reached a revision; a 504 if it takes too long."""
    if revision <= store.revision:
        return
    deadline = asyncio.get_running_loop().time() + FRESHNESS_SECONDS
    while revision > store.revision:
        if asyncio.get_running_loop().time() >= deadline:
            raise status.future_version(revision, current=store.revision)
        await asyncio.sleep(0.05)


async def _revision(store: Reader, list_options: options.ListOptions) -> int | None:
    """Return the revision to list at; None for the newest."""
    if not list_options.resource_version:
        return None
    try:
        requested = parse_revision(list_options.resource_version)
    except errors.InvalidValueError as error:
        quoted = quotation.quote(list_options.resource_version)
        problem = f"resourceVersion: Invalid value: {quoted}: {error}"
        raise status.bad_request(f"invalid resource version: {problem}") from None
    is_exact = list_options.resource_version_match == options.EXACT
    if requested and (is_exact or (not list_options.resource_version_match and list_options.limit > 0)):
        return requested
    await wait_for(store, requested)
    return None


def _page(
    store: Reader,
    scope: Scope,
    list_options: options.ListOptions,
    *,
    revision: int | None,
    after: record.Key | None,
) -> protocol.Page:
    single = _single(store, scope, list_options, revision=revision)
    if single is not None:
        return single
    return store.list(
        scope.resource.key,
        _namespace(scope, list_options),
        revision=revision,
        limit=list_options.limit if list_options.limit > 0 else None,
        after=after,
        where=selection.matcher(list_options),
    )


def _single(
    store: Reader, scope: Scope, list_options: options.ListOptions, *, revision: int | None
) -> protocol.Page | None:
    """Return a list of one object by name, which clients use to watch single objects; None for other lists."""
    name = list_options.fields.required("metadata.name")
    namespace = _namespace(scope, list_options)
    is_located = namespace is not None or not scope.resource.namespaced
    if name is None or not is_located or revision is not None or list_options.continue_token:
        return None
    existing = store.get(record.Key(scope.resource.key, namespace or "", name))
    matches = selection.matcher(list_options)
    assert matches is not None, "a name is a field selector"
    records = [existing] if existing is not None and matches(existing) else []
    return protocol.Page(records, store.revision, None, 0)


def _namespace(scope: Scope, list_options: options.ListOptions) -> str | None:
    if scope.namespace is not None or not scope.resource.namespaced:
        return scope.namespace
    selected = list_options.fields.required("metadata.namespace")
    return selected if selected and not names.dns1123_label(selected) else None


# Tokens


def encode_token(after: record.Key, revision: int, *, scope: Scope) -> str:
    """Return the token that continues a list; opaque to clients."""
    start = after.name if scope.namespace is not None or not after.namespace else f"{after.namespace}/{after.name}"
    data = msgspec.json.encode(Token(v=_TOKEN_VERSION, rv=revision, start=f"{start}\0")._asdict())
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _resume(scope: Scope, list_options: options.ListOptions) -> tuple[record.Key, int | None]:
    token = _decode_token(list_options.continue_token)
    if list_options.resource_version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    namespace, _, name = token.start.rpartition("/")
    key = record.Key(scope.resource.key, namespace or scope.namespace or "", name)
    return key, token.rv if token.rv > 0 else None


def _decode_token(text: str) -> Token:
    try:
        token = read_token(text)
    except errors.InvalidValueError as error:
        raise _bad_token(f"continue key is not valid: {error}") from None
    if token.v != _TOKEN_VERSION:
        raise _bad_token(f"continue key is not valid: server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _bad_token(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_TOKEN_VERSION})"
        )
    if not token.start:
        raise _bad_token(f"continue key is not valid: encoded start key empty (version {_TOKEN_VERSION})")
    start = token.start.removeprefix("/").rstrip("\0")
    if start.count("/") > 1 or any(part in ("", ".", "..") for part in start.split("/")):
        raise _bad_token(f"continue key is not valid: {token.start}")
    return token._replace(start=start)


def _bad_token(problem: str) -> status.StatusError:
    return status.bad_request(f"invalid continue token: {problem}")


def _expired_token(after: record.Key, scope: Scope) -> status.StatusError:
    refusal = status.expired(_EXPIRED_TOKEN)
    document: dict[str, Any] = dict(refusal.document)
    document["metadata"] = {"continue": encode_token(after, _NEWEST, scope=scope)}
    return status.StatusError(document)


def read_token(text: str) -> Token:
    """Return the content of a token; an InvalidValueError says what is wrong with it."""
    data = _decode_base64(text)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise errors.InvalidValueError(jsonsyntax.explain(data) or "invalid JSON") from None
    if content is None:
        return Token()
    if not isinstance(content, dict):
        json_type = decodeerrors.describe(content)
        raise errors.InvalidValueError(
            f"json: cannot unmarshal {json_type} into Go value of type storage.continueToken"
        )
    return Token(**{name: _check_field(name, content[name]) for name in _TYPES if content.get(name) is not None})


def _decode_base64(text: str) -> bytes:
    """Decode base64 without padding, as Go does: line breaks are skipped, and stray bits at the end are ignored."""
    letters = text.replace("\r", "").replace("\n", "")
    good = _ALPHABET.match(letters)
    assert good is not None, "the pattern matches the empty text"
    if good.end() < len(letters):
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, good.end())}")
    if len(letters) % 4 == 1:
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, len(letters) - 1)}")
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def _offset(text: str, position: int) -> int:
    """Return the offset of a letter in the whole text, in bytes."""
    positions = [place for place, letter in enumerate(text) if letter not in "\r\n"]
    return len(text[: positions[position]].encode())


def _check_field(name: str, value: Any) -> Any:
    go_type = _TYPES[name]
    if go_type == "string":
        is_fit = isinstance(value, str)
    else:
        is_fit = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if is_fit:
        return value
    json_type = decodeerrors.describe(value)
    description = f"{json_type} {json.dumps(value)}" if json_type == "number" and go_type == "int64" else json_type
    raise errors.InvalidValueError(
        f"json: cannot unmarshal {description} into Go struct field continueToken.{name} of type {go_type}"
    )
