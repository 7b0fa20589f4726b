"""Lists: which objects, as of which revision, and how to go on where a client asked for a part only.

Called by the list and deletecollection verbs, and by watches that begin with what exists. Versions and tokens have
upstream's meaning and messages.
"""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.reads import continuation, selection
from drachma.server.reads.reader import Reader
from drachma.server.surface import resources
from drachma.store import protocol, record
from drachma.values import names, quotation

FRESHNESS_SECONDS: Final = 3.0
"""How long a read waits for a revision that has not been reached."""

_EXPIRED: Final = "The resourceVersion for the provided list is too old."
_EXPIRED_TOKEN: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_TOKEN_VERSION: Final = "meta.k8s.io/v1"
_NEWEST: Final = -1


class Listed(NamedTuple):
    """A list or a part of one. ``token`` goes on where it ends; ``remaining`` is None where nobody knows."""

    records: Sequence[record.Record]
    revision: int
    token: str
    remaining: int | None


class Scope(NamedTuple):
    """The collection that a request is about; the namespace is None for all namespaces."""

    resource: resources.Resource
    namespace: str | None


async def read(store: Reader, scope: Scope, wanted: options.ListOptions) -> Listed:
    """The objects that a client asked for."""
    after: record.Key | None = None
    revision: int | None = None
    if wanted.continue_token:
        after, revision = _resume(scope, wanted)
    else:
        revision = await _revision(store, wanted)
    try:
        page = _page(store, scope, wanted, revision=revision, after=after)
    except errors.GoneError:
        if wanted.continue_token:
            assert after is not None, "a token says where to go on"
            raise _expired_token(after, scope) from None
        raise status.expired(_EXPIRED) from None
    except errors.FutureRevisionError:
        raise status.future_version(revision or 0, current=store.revision) from None
    token = encode_token(page.after, page.revision, scope=scope) if page.after is not None else ""
    return Listed(page.records, page.revision, token, page.remaining if token else None)


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; InvalidValueError in Go's words."""
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdigit():
        raise errors.InvalidValueError(f"strconv.ParseUint: parsing {quotation.quote(text)}: invalid syntax")
    if len(text) > 20 or int(text) >= 2**64:
        raise errors.InvalidValueError(f"strconv.ParseUint: parsing {quotation.quote(text)}: value out of range")
    return int(text)


async def wait_for(store: Reader, revision: int) -> None:
    """Waits until the store has reached a revision; a 504 if it takes too long."""
    if revision <= store.revision:
        return
    deadline = asyncio.get_running_loop().time() + FRESHNESS_SECONDS
    while revision > store.revision:
        if asyncio.get_running_loop().time() >= deadline:
            raise status.future_version(revision, current=store.revision)
        await asyncio.sleep(0.05)


async def _revision(store: Reader, wanted: options.ListOptions) -> int | None:
    """The revision to list at; None for the newest."""
    if not wanted.resource_version:
        return None
    try:
        asked = parse_revision(wanted.resource_version)
    except errors.InvalidValueError as error:
        shown = quotation.quote(wanted.resource_version)
        problem = f"resourceVersion: Invalid value: {shown}: {error}"
        raise status.bad_request(f"invalid resource version: {problem}") from None
    is_exact = wanted.resource_version_match == options.EXACT
    if asked and (is_exact or (not wanted.resource_version_match and wanted.limit > 0)):
        return asked
    await wait_for(store, asked)
    return None


def _page(
    store: Reader,
    scope: Scope,
    wanted: options.ListOptions,
    *,
    revision: int | None,
    after: record.Key | None,
) -> protocol.Page:
    single = _single(store, scope, wanted, revision=revision)
    if single is not None:
        return single
    return store.list(
        scope.resource.key,
        _namespace(scope, wanted),
        revision=revision,
        limit=wanted.limit if wanted.limit > 0 else None,
        after=after,
        where=selection.matcher(wanted),
    )


def _single(store: Reader, scope: Scope, wanted: options.ListOptions, *, revision: int | None) -> protocol.Page | None:
    """A list of one by name, which is how clients watch and wait for single objects; looked up, not searched."""
    name = wanted.fields.required("metadata.name")
    namespace = _namespace(scope, wanted)
    is_located = namespace is not None or not scope.resource.namespaced
    if name is None or not is_located or revision is not None or wanted.continue_token:
        return None
    found = store.get(record.Key(scope.resource.key, namespace or "", name))
    matches = selection.matcher(wanted)
    assert matches is not None, "a name is a field selector"
    records = [found] if found is not None and matches(found) else []
    return protocol.Page(records, store.revision, None, 0)


def _namespace(scope: Scope, wanted: options.ListOptions) -> str | None:
    if scope.namespace is not None or not scope.resource.namespaced:
        return scope.namespace
    selected = wanted.fields.required("metadata.namespace")
    return selected if selected and not names.dns1123_label(selected) else None


# Tokens


def encode_token(after: record.Key, revision: int, *, scope: Scope) -> str:
    """Where a later request goes on; opaque to clients."""
    start = after.name if scope.namespace is not None or not after.namespace else f"{after.namespace}/{after.name}"
    data = msgspec.json.encode(continuation.Token(v=_TOKEN_VERSION, rv=revision, start=f"{start}\0")._asdict())
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _resume(scope: Scope, wanted: options.ListOptions) -> tuple[record.Key, int | None]:
    token = _decode_token(wanted.continue_token)
    if wanted.resource_version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    namespace, _, name = token.start.rpartition("/")
    key = record.Key(scope.resource.key, namespace or scope.namespace or "", name)
    return key, token.rv if token.rv > 0 else None


def _decode_token(text: str) -> continuation.Token:
    try:
        token = continuation.read(text)
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
