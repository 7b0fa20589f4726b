"""What queueing depends on in a running cluster, read through its API."""

from __future__ import annotations

from drachma import errors
from drachma.api import configmap, meta
from drachma.client import Client, protocol, target
from drachma.queueing.component import configurationmap
from drachma.simulate import livecluster, queueingstate


async def read(client: Client) -> list[meta.Object]:
    """All objects that admission depends on.

    Raises:
        errors.ObjectNotFoundError: the server has no queues.
    """
    objects: list[meta.Object] = []
    for kind in queueingstate.KINDS:
        selection = configurationmap.SELECTION if kind is configmap.ConfigMap else protocol.EVERYTHING
        try:
            objects += await livecluster.everything(client, kind, selection)
        except errors.ObjectNotFoundError as error:
            message = f"{target.of(kind).qualified}: the server does not have it: is queueing on?"
            raise errors.ObjectNotFoundError({**error.document, "message": message}) from None
    return objects
