"""The verbs that change nothing: get, list and watch."""

import asyncio
import contextlib
from typing import Final

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.pipeline.handling import Handler
from drachma.server.presentation import forms, negotiation
from drachma.server.reads import listing, watching
from drachma.server.surface import verbs
from drachma.server.wire import responses
from drachma.server.wire.requests import Send
from drachma.values import quotation

_STREAM_HEADERS: Final = ((b"cache-control", b"no-cache, private"), (b"content-type", b"application/json"))


async def get(handler: Handler) -> responses.Response:
    """One object."""
    handler.check_name()
    route = handler.route
    version = handler.request.query.get("resourceVersion", ("",))[0]
    if version:
        try:
            revision = listing.parse_revision(version)
        except errors.InvalidValueError as error:
            problem = f"resourceVersion: Invalid value: {quotation.quote(version)}: {error}"
            raise status.bad_request(f"invalid resource version: {problem}") from None
        await listing.wait_for(handler.services.store, revision)
    found = handler.services.registry.get(handler.resource, route.namespace or "", name=route.name)
    return handler.answer_stored(200, found)


async def list_(handler: Handler) -> responses.Response:
    """A collection, or a part of it."""
    if handler.output.form is negotiation.Form.METADATA:
        raise forms.not_a_single_object(handler.resource)
    listed = await listing.read(handler.services.store, handler.scope, handler.list_options())
    return handler.answer_list(200, listed)


def wants_watch(handler: Handler) -> bool:
    """Whether a request for a collection is one for its changes."""
    is_list = handler.route.verb in (verbs.LIST, verbs.WATCH)
    return is_list and (handler.route.verb == verbs.WATCH or options.boolean(handler.request.query, "watch"))


async def watch(handler: Handler, send: Send) -> int:
    """Streams the changes of a collection until client, time or server end it; returns how many bytes were sent."""
    stream = _open(handler)
    headers = [*_STREAM_HEADERS, *responses.warning_headers(handler.request.warnings)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    # The headers must reach the client before the first event, however long that takes.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    listener = asyncio.create_task(_close_on_disconnect(handler, stream))
    sent = 0
    try:
        async with contextlib.aclosing(stream.chunks()) as chunks:
            async for chunk in chunks:
                sent += len(chunk)
                with handler.services.streams.sending.start():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        # The client does not read. It is cut off, and finds out when it does.
        pass
    finally:
        listener.cancel()
    return sent


def _open(handler: Handler) -> watching.Stream:
    query = dict(handler.request.query)
    query["watch"] = ("true",)
    wanted = options.for_list(query, handler.resource, version=handler.route.version)
    watching.check(wanted, handler.resource)
    if handler.route.name:
        wanted = watching.of_object(wanted, handler.route.name)
    request = watching.Request(handler.scope, handler.route.version, wanted, _framer(handler))
    seconds = watching.lifetime(wanted, handler.services.chance)
    return watching.Stream(handler.services.store, request, streams=handler.services.streams, seconds=seconds)


def _framer(handler: Handler) -> watching.Framer:
    output, version = handler.output, handler.route.version
    if output.media_type != negotiation.JSON:
        raise status.not_acceptable(negotiation.STREAM_MEDIA_TYPES)
    if output.form is negotiation.Form.OBJECT:
        return watching.PlainFramer(handler.encoder, version)
    convert = forms.event_converter(
        resource=handler.resource,
        output=output,
        context=forms.Context.of(handler.request.query, now=handler.services.registry.clock()),
        clock=handler.services.registry.clock,
    )
    return watching.DocumentFramer(handler.encoder, version, convert=convert)


async def _close_on_disconnect(handler: Handler, stream: watching.Stream) -> None:
    await handler.request.disconnected()
    stream.close()
