"""Reads: one object, a collection or a part of it, and its changes."""

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.services import Services, check_name, scope
from drachma.server.reads import listing, watching
from drachma.values import quotation


async def get(services: Services, call: Call) -> Answer:
    """One object, as of a version at least as new as the one that is asked for."""
    check_name(call.target)
    version = call.query.get("resourceVersion", ("",))[0]
    if version:
        try:
            revision = listing.parse_revision(version)
        except errors.InvalidValueError as error:
            problem = f"resourceVersion: Invalid value: {quotation.quote(version)}: {error}"
            raise status.bad_request(f"invalid resource version: {problem}") from None
        await listing.wait_for(services.store, revision)
    return Answer(200, services.get(call.target))


async def list_(services: Services, call: Call) -> Answer:
    """A collection, or a part of it."""
    target = call.target
    wanted = options.for_list(call.query, target.resource, version=target.version)
    return Answer(200, await listing.read(services.store, scope(target), wanted))


async def watch(services: Services, call: Call) -> Answer:
    """The changes of a collection or of one object; the watch begins when the door opens it."""
    target = call.target
    query = {**call.query, "watch": ("true",)}
    wanted = options.for_list(query, target.resource, version=target.version)
    if target.name:
        wanted = watching.of_object(wanted, target.name)
    return Answer(200, watching.Watch(services.store, scope(target), wanted, watches=services.watches))
