"""The state of a running cluster, read through its API."""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.api import configmap, meta
from drachma.client import Client, Selection, protocol, target
from drachma.queueing.component import configurationmap
from drachma.simulate import queueingstate
from drachma.simulate.clusterstate import KINDS, ClusterState

_PAGE: Final = 500


async def read(client: Client) -> ClusterState:
    """All objects that placing pods depends on, kind after kind; what changes meanwhile may be seen or not."""
    objects: list[meta.Object] = []
    for kind in KINDS:
        objects += await _all(client, kind)
    return ClusterState.of(objects)


async def read_queueing(client: Client) -> list[meta.Object]:
    """All objects that admission depends on.

    Raises:
        errors.ObjectNotFoundError: the server has no queues.
    """
    objects: list[meta.Object] = []
    for kind in queueingstate.KINDS:
        selection = configurationmap.SELECTION if kind is configmap.ConfigMap else protocol.EVERYTHING
        try:
            objects += await _all(client, kind, selection)
        except errors.ObjectNotFoundError as error:
            message = f"{target.of(kind).qualified}: the server does not have it: is queueing on?"
            raise errors.ObjectNotFoundError({**error.document, "message": message}) from None
    return objects


async def _all(client: Client, kind: target.Of[Any], selection: Selection = protocol.EVERYTHING) -> list[meta.Object]:
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
