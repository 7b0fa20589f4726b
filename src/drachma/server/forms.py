"""The forms that objects and lists can be answered in: whole, as a Table, or just their metadata.

Chosen by content negotiation; the columns of tables are in :mod:`drachma.server.table`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.server import listing, negotiation, options, resources, status
from drachma.values import quotation

Document = Mapping[str, Any]

_INCLUDES: Final = ("", "Metadata", "Object", "None")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a form depends on beside the object: the time that ages count to, and what rows of a table carry."""

    now: datetime
    include: str = "Metadata"

    @classmethod
    def of(cls, query: options.Query, *, now: datetime) -> "Context":
        """The context that a query asks for; a 400 for one that upstream refuses."""
        include = query.get("includeObject", ("",))[0]
        if include not in _INCLUDES:
            problem = "must be 'Metadata', 'Object', 'None', or empty"
            shown = f"includeObject: Invalid value: {quotation.quote(include)}: {problem}"
            raise status.bad_request(f"Unable to convert to Table as requested: {shown}")
        return cls(now=now, include=include or "Metadata")


def list_metadata(listed: listing.Listed) -> dict[str, Any]:
    """``metadata`` of a list."""
    head: dict[str, Any] = {"resourceVersion": str(listed.revision)}
    if listed.token:
        head["continue"] = listed.token
    if listed.remaining is not None:
        head["remainingItemCount"] = listed.remaining
    return head


def present_object(
    document: Document,
    *,
    resource: resources.Resource,
    version: str,
    output: negotiation.Output,
    context: Context,
) -> Any:
    """One object in the form that was asked for."""
    match output.form:
        case negotiation.Form.OBJECT:
            return document
        case negotiation.Form.METADATA:
            return metadata_only(document, output)
        case negotiation.Form.METADATA_LIST:
            message = "you requested PartialObjectMetadataList, but the requested object is not a list"
            raise status.failure(406, "NotAcceptable", message)
        case negotiation.Form.TABLE:
            version_text = document["metadata"].get("resourceVersion", "")
            head = {"resourceVersion": version_text} if version_text else {}
            return _table([document], head, resource=resource, version=version, output=output, context=context)


def present_list(
    items: Sequence[Document],
    head: dict[str, Any],
    *,
    resource: resources.Resource,
    version: str,
    output: negotiation.Output,
    context: Context,
) -> Any:
    """A list in the form that was asked for."""
    match output.form:
        case negotiation.Form.OBJECT:
            bare = [{name: part for name, part in item.items() if name not in ("kind", "apiVersion")} for item in items]
            api_version = resource.api_version(version)
            return {"kind": resource.list_kind, "apiVersion": api_version, "metadata": head, "items": bare}
        case negotiation.Form.METADATA:
            raise not_a_single_object(resource)
        case negotiation.Form.METADATA_LIST:
            partial = [metadata_only(item, output) for item in items]
            api_version = f"meta.k8s.io/{output.meta_version}"
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": api_version,
                "metadata": head,
                "items": partial,
            }
        case negotiation.Form.TABLE:
            return _table(items, head, resource=resource, version=version, output=output, context=context)


def event_converter(
    *,
    resource: resources.Resource,
    version: str,
    output: negotiation.Output,
    context: Context,
    clock: Callable[[], datetime],
) -> Callable[[Document], Any]:
    """What makes the objects of a watch's events; only the first table has the definitions of its columns."""
    if output.form is not negotiation.Form.TABLE:
        return lambda document: metadata_only(document, output)
    is_first = True

    def convert(document: Document) -> Any:
        nonlocal is_first
        current = msgspec.structs.replace(context, now=clock())
        head = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
        made = _table([document], head, resource=resource, version=version, output=output, context=current)
        if not is_first:
            made["columnDefinitions"] = None
        is_first = False
        return made

    return convert


def metadata_only(document: Document, output: negotiation.Output) -> dict[str, Any]:
    """A PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{output.meta_version}",
        "metadata": document["metadata"],
    }


def not_a_single_object(resource: resources.Resource) -> status.StatusError:
    """A list was asked for in a form that only single objects have."""
    message = (
        "you requested PartialObjectMetadata, but the requested object is a list "
        f"(*{resource.group.partition('.')[0] or 'core'}.{resource.list_kind})"
    )
    return status.failure(406, "NotAcceptable", message)


def _table(
    items: Sequence[Document],
    head: dict[str, Any],
    *,
    resource: resources.Resource,
    version: str,
    output: negotiation.Output,
    context: Context,
) -> dict[str, Any]:
    raise status.not_acceptable(negotiation.MEDIA_TYPES)
