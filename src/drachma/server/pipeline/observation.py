"""Reads that somebody else in the process answers, from what it has in memory and nobody stores."""

from typing import Any

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Observers, Services
from drachma.values import quotation


async def get(services: Services, call: Call) -> Answer:
    """The items about one object."""
    return Answer(200, Verbatim(observed(services.observers, call.target, call.query)))


def observed(observers: Observers, target: Target, query: options.Query) -> dict[str, Any]:
    """The document with the items; StatusError where nobody knows, nothing is there, or the query makes no sense."""
    resource = target.resource
    assert target.subresource is not None, "what is observed is below objects"
    observe = observers.get(f"{resource.key}/{target.subresource.name}")
    if observe is None:
        raise status.unavailable(f"nobody here knows about {resource.qualified}")
    try:
        items = observe(target.namespace or "", target.name, query)
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    if items is None:
        message = f"{resource.singular}.{resource.group} {quotation.quote(target.name)} not found"
        details = {"name": target.name, "group": resource.group, "kind": resource.singular}
        raise status.failure(404, "NotFound", message, details=details)
    envelope = {"kind": target.subresource.kind, "apiVersion": target.api_version, "metadata": {}}
    return {**envelope, "items": list(items)}
