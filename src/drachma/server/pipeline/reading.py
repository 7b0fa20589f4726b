"""Reads: objects, collections and watches."""

from typing import Any

from drachma import errors
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Observers, Services, check_name, scope
from drachma.server.reads import listing, watching
from drachma.values import quotation


async def get(services: Services, call: Call) -> Answer:
    """Return one object, at least as new as the requested version."""
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
    """Return a collection, or a page of it."""
    target = call.target
    list_options = options.read_list_options(call.query, target.resource, version=target.version)
    return Answer(200, await listing.read(services.store, scope(target), list_options))


async def watch(services: Services, call: Call) -> Answer:
    """Return the watch of a collection or of one object; the caller opens it."""
    target = call.target
    query = {**call.query, "watch": ("true",)}
    list_options = options.read_list_options(query, target.resource, version=target.version)
    if target.name:
        list_options = watching.select_object(list_options, target.name)
    return Answer(200, watching.Watch(services.store, scope(target), list_options, watches=services.watches))


async def observe(services: Services, call: Call) -> Answer:
    """Return the items that another component of the process has about one object."""
    return Answer(200, Verbatim(observed(services.observers, call.target, call.query)))


def observed(observers: Observers, target: Target, query: options.Query) -> dict[str, Any]:
    """Return the document with the items.

    Raises:
        status.StatusError: no component observes the subresource, the object does not exist, or the query is invalid.
    """
    resource = target.resource
    assert target.subresource is not None, "observations are subresources"
    observer = observers.get(f"{resource.key}/{target.subresource.name}")
    if observer is None:
        raise status.unavailable(f"no component of this process observes {resource.qualified}")
    try:
        items = observer(target.namespace or "", target.name, query)
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    if items is None:
        message = f"{resource.singular}.{resource.group} {quotation.quote(target.name)} not found"
        details = {"name": target.name, "group": resource.group, "kind": resource.singular}
        raise status.failure(404, "NotFound", message, details=details)
    envelope = {"kind": target.subresource.kind, "apiVersion": target.api_version, "metadata": {}}
    return {**envelope, "items": list(items)}
