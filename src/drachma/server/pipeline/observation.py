"""Reads that somebody else in the process answers, from what it has in memory and nobody stores."""

from drachma import errors
from drachma.server import status
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Services
from drachma.values import quotation


async def get(services: Services, call: Call) -> Answer:
    """The items about one object."""
    target = call.target
    resource = target.resource
    assert target.subresource is not None, "what is observed is below objects"
    observe = services.observers.get(f"{resource.key}/{target.subresource.name}")
    if observe is None:
        raise status.unavailable(f"nobody here knows about {resource.qualified}")
    try:
        items = observe(target.namespace or "", target.name, call.query)
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    if items is None:
        message = f"{resource.singular}.{resource.group} {quotation.quote(target.name)} not found"
        details = {"name": target.name, "group": resource.group, "kind": resource.singular}
        raise status.failure(404, "NotFound", message, details=details)
    envelope = {"kind": target.subresource.kind, "apiVersion": target.api_version, "metadata": {}}
    return Answer(200, Verbatim({**envelope, "items": list(items)}))
