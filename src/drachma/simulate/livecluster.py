"""The state of a running cluster, read through its API."""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.api import meta
from drachma.client import Client, Selection, protocol, target
from drachma.simulate.clusterstate import KINDS, ClusterState

_PAGE: Final = 500


async def read(client: Client) -> ClusterState:
    """All objects that placing pods depends on, kind after kind; what changes meanwhile may be seen or not."""
    objects: list[meta.Object] = []
    for kind in KINDS:
        objects += await everything(client, kind)
    return ClusterState.of(objects)


async def everything(
    client: Client, kind: target.Of[Any], selection: Selection = protocol.EVERYTHING
) -> list[meta.Object]:
    """All objects of a kind, page by page; none of one that clusters may do without, and this one does."""
    objects: list[meta.Object] = []
    token = ""
    while True:
        try:
            page = await client.list(kind, selection, limit=_PAGE, continue_token=token)
        except errors.ObjectNotFoundError:
            if target.of(kind).is_optional:
                return []
            raise
        objects += page.items
        token = page.continue_token
        if not token:
            return objects
