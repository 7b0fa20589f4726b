"""Forms of objects and lists in answers: whole, as a Table, or metadata only.

Content negotiation chooses the form; the columns of tables are in :mod:`drachma.server.presentation.table`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.server import status
from drachma.server.calls import options
from drachma.server.presentation import negotiation, table
from drachma.server.reads import listing
from drachma.server.surface import resources
from drachma.values import quotation

Document = Mapping[str, Any]

_INCLUDES: Final = ("", "Metadata", "Object", "None")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a form other than the object: the time for ages, and the objects in rows of a table."""

    now: datetime
    include: str = "Metadata"

    @classmethod
    def of(cls, query: options.Query, *, now: datetime) -> "Context":
        """Return the context that a query asks for; a 400 for one that upstream refuses."""
        include = query.get("includeObject", ("",))[0]
        if include not in _INCLUDES:
            problem = "must be 'Metadata', 'Object', 'None', or empty"
            detail = f"includeObject: Invalid value: {quotation.quote(include)}: {problem}"
            raise status.bad_request(f"Unable to convert to Table as requested: {detail}")
        return cls(now=now, include=include or "Metadata")


def list_metadata(listed: listing.Listed) -> dict[str, Any]:
    """Return the ``metadata`` of a list."""
    head: dict[str, Any] = {"resourceVersion": str(listed.revision)}
    if listed.token:
        head["continue"] = listed.token
    if listed.remaining is not None:
        head["remainingItemCount"] = listed.remaining
    return head


def present_object(
    document: Document, *, resource: resources.Resource, output: negotiation.Output, context: Context
) -> Any:
    """Return one object in the negotiated form."""
    match output.form:
        case negotiation.Form.OBJECT:
            return document
        case negotiation.Form.METADATA:
            return table.metadata_of(dict(document), meta_version=output.meta_version)
        case negotiation.Form.METADATA_LIST:
            message = "you requested PartialObjectMetadataList, but the requested object is not a list"
            raise status.failure(406, "NotAcceptable", f"{message} ({_go_type(resource.kind, resource)})")
        case negotiation.Form.TABLE:
            return table.make_object_table(
                dict(document),
                resource,
                now=context.now,
                include=context.include,
                meta_version=output.meta_version,
            )


def present_list(
    items: Sequence[Document],
    head: dict[str, Any],
    *,
    resource: resources.Resource,
    version: str,
    output: negotiation.Output,
    context: Context,
) -> Any:
    """Return a list in the negotiated form; items are whole objects."""
    api_version = resource.api_version(version)
    document = {"kind": resource.list_kind, "apiVersion": api_version, "metadata": head, "items": list(items)}
    match output.form:
        case negotiation.Form.OBJECT:
            if resource.traits.is_custom:
                return document
            bare = [{name: part for name, part in item.items() if name not in ("kind", "apiVersion")} for item in items]
            return {**document, "items": bare}
        case negotiation.Form.METADATA:
            raise not_a_single_object(resource)
        case negotiation.Form.METADATA_LIST:
            return table.metadata_of_list(document, meta_version=output.meta_version)
        case negotiation.Form.TABLE:
            return table.make_list_table(
                document, resource, now=context.now, include=context.include, meta_version=output.meta_version
            )


def event_converter(
    *, resource: resources.Resource, output: negotiation.Output, context: Context, clock: Callable[[], datetime]
) -> Callable[[Document], Any]:
    """Return the converter of a watch's events; only the first table has column definitions."""
    if output.form is not negotiation.Form.TABLE:
        return lambda document: table.metadata_of(dict(document), meta_version=output.meta_version)
    is_first = True

    def convert(document: Document) -> Any:
        nonlocal is_first
        event_table = table.make_object_table(
            dict(document),
            resource,
            now=clock(),
            include=context.include,
            meta_version=output.meta_version,
            is_headless=not is_first,
        )
        is_first = False
        return event_table

    return convert


def not_a_single_object(resource: resources.Resource) -> status.StatusError:
    """Return the 406 for a list in a form that only single objects have."""
    go_type = _go_type(resource.list_kind, resource)
    message = f"you requested PartialObjectMetadata, but the requested object is a list ({go_type})"
    return status.failure(406, "NotAcceptable", message)


def _go_type(kind: str, resource: resources.Resource) -> str:
    return f"*{resource.group.partition('.')[0] or 'core'}.{kind}"
