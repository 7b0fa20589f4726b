"""The verbs that delete: one object, or a collection."""

import asyncio
from typing import Any, Final

from drachma.server import status
from drachma.server.calls import options
from drachma.server.decoding import deletebody
from drachma.server.pipeline import deletion
from drachma.server.pipeline.handling import Handler
from drachma.server.presentation import negotiation
from drachma.server.reads import listing
from drachma.server.wire import responses

_AT_ONCE: Final = 100
"""Objects of a collection that are deleted at the same time, so that they share commits."""


async def delete(handler: Handler) -> responses.Response:
    """One object, now or when its time and its finalizers are through."""
    handler.check_name()
    wanted = await _options(handler)
    outcome = await handler.services.deleter.delete(handler.write(), wanted)
    if outcome.is_gone and not handler.strategy.traits.returns_deleted:
        return responses.document(200, _status(handler, outcome), handler.output)
    # Upstream's only sign that an object is still there, for clients that ask in the old way.
    code = 202 if not outcome.is_gone and wanted.orphan_dependents is False else 200
    if outcome.stored is not None:
        return handler.answer_stored(code, outcome.stored)
    return handler.answer_document(code, outcome.document)


async def delete_collection(handler: Handler) -> responses.Response:
    """All objects that a selector chooses; the answer lists them as they were. Not atomic, as upstream's."""
    selection = handler.list_options()
    wanted = await _options(handler)
    listed = await listing.read(handler.services.store, handler.scope, selection)
    for start in range(0, len(listed.records), _AT_ONCE):
        part = listed.records[start : start + _AT_ONCE]
        outcomes = await asyncio.gather(
            *(_delete_one(handler, stored.key.namespace, stored.key.name, wanted) for stored in part),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
    return handler.answer_list(200, listed)


async def _delete_one(handler: Handler, namespace: str, name: str, wanted: options.DeleteOptions) -> None:
    write = handler.write(name=name)
    assert write.namespace == namespace, "collections are deleted namespace by namespace"
    try:
        await handler.services.deleter.delete(write, wanted)
    except status.StatusError as error:
        if error.reason != "NotFound":
            raise


async def _options(handler: Handler) -> options.DeleteOptions:
    body = await handler.request.body()
    content: Any = None
    if body:
        media_type = negotiation.body_type(handler.request.header(b"content-type"))
        content = deletebody.read(body, media_type)
    return options.for_delete(handler.request.query, content)


def _status(handler: Handler, outcome: deletion.Deleted) -> dict[str, Any]:
    metadata = outcome.document["metadata"]
    details = {
        "name": metadata["name"],
        "group": handler.resource.group,
        "kind": handler.resource.plural,
        "uid": metadata["uid"],
    }
    return status.success(0, details=details)
