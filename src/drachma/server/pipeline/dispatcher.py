"""The dispatcher: every call, through whichever door, comes here, and its answer leaves from here.

It has the only table of what is done on which verb. Calls that it gets are about something that is served: the doors
have looked that up. Whatever refuses a call raises a Status, which both doors hear alike.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from drachma import errors
from drachma.server import status
from drachma.server.calls.call import BODY_LIMIT, Call
from drachma.server.pipeline import binding, creation, deletion, eviction, patches, reading, scale, update
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.services import Services
from drachma.server.surface import apisurface, verbs

_log = logging.getLogger(__name__)

Operation: TypeAlias = Callable[[Services, Call], Awaitable[Answer]]

OBJECT: Final[Mapping[str, Operation]] = {
    verbs.CREATE: creation.create,
    verbs.DELETE: deletion.delete,
    verbs.DELETE_COLLECTION: deletion.delete_collection,
    verbs.GET: reading.get,
    verbs.LIST: reading.list_,
    verbs.PATCH: patches.patch,
    verbs.UPDATE: update.update,
    verbs.WATCH: reading.watch,
}
"""What is done to objects and collections, also through subresources that carry the object's own kind."""

SUBRESOURCES: Final[Mapping[str, Mapping[str, Operation]]] = {
    "binding": {verbs.CREATE: binding.bind},
    "eviction": {verbs.CREATE: eviction.evict},
    "scale": {verbs.GET: scale.get, verbs.PATCH: scale.patch, verbs.UPDATE: scale.update},
}
"""What is done through subresources that have a kind of their own."""


class Dispatcher:
    """The API on one store, without any form of access to it.

    ``surface`` is what is served from now on: calls are made on it, and whoever gives it another one changes what the
    next calls find. Those that are under way stay on theirs.
    """

    def __init__(self, services: Services, surface: apisurface.ApiSurface) -> None:
        self.services: Final = services
        self.surface = surface

    async def dispatch(self, call: Call) -> Answer:
        """The answer to a call.

        Raises:
            status.StatusError: it is refused, and nothing has been written.
        """
        chain = self.services.phases
        try:
            for authorise in chain.authorise:
                authorise(call)
            if len(call.body.data) > BODY_LIMIT:
                raise status.too_large(f"limit is {BODY_LIMIT}")
            answer = await _operation(call)(self.services, call)
        except (status.StatusError, errors.StoreError) as error:
            refusal = _refusal(error)
            for audit in chain.audit:
                audit(call, refusal)
            if refusal is error:
                raise
            raise refusal from error
        for audit in chain.audit:
            audit(call, answer)
        return answer


def _operation(call: Call) -> Operation:
    subresource = call.target.subresource
    if subresource is not None and subresource.kind:
        return SUBRESOURCES[subresource.name][call.verb]
    return OBJECT[call.verb]


def _refusal(error: status.StatusError | errors.StoreError) -> status.StatusError:
    """What a client is told; errors of the store are nobody's mistake: it is full, or closed.

    Differs from upstream: some mistakes of clients it has no Status for and answers with a 500 without a reason,
    which stands for a defect of the server. Here they are 422s, which clients do not try again.
    """
    if isinstance(error, status.StatusError):
        if error.code != 500 or error.reason:
            return error
        return status.failure(422, "Invalid", str(error), details={})
    if isinstance(error, errors.StoreClosedError):
        return status.unavailable("the server is shutting down")
    _log.error("the store refuses: %s", error)
    return status.unavailable(f"the store cannot be written: {error}")
