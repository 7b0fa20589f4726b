"""Statuses written whole, as upstream's controllers write those that their roles let them update and not patch."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.client import patches, protocol, target


async def update(
    client: protocol.Client,
    kind: target.Of[Any],
    *,
    of: meta.ObjectMeta,
    content: Mapping[str, Any],
    meant: patches.Preconditions,
) -> str:
    """Sets fields of an object's status as a merge patch would; the version that there is then.

    Raises:
        errors.ObjectNotFoundError, errors.ObjectConflictError: it is no longer the object, or the version, that is
            meant.
    """
    document = await client.get_document(kind, of.name, namespace=of.namespace)
    document["metadata"] = {**document["metadata"], **meant.metadata}
    document["status"] = merged(document.get("status") or {}, content)
    changed = await client.update_document(kind, document, subresource="status")
    version: str = changed["metadata"]["resourceVersion"]
    return version


def merged(old: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with others in their place, as a merge patch puts them there."""
    result = dict(old)
    for field, value in content.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, Mapping):
            before = result.get(field)
            result[field] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[field] = value
    return result
