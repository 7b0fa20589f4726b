"""Writes of the Active conditions of admission checks and clusters."""

from __future__ import annotations

from typing import Any

from drachma.api import meta
from drachma.client import patches, protocol, target
from drachma.queueing import conditions
from drachma.queueing.kinds import decoding


async def write(client: protocol.Client, resource: target.Target[Any], stored: Any, condition: meta.Condition) -> None:
    """Set a condition of an object without a namespace, in the version that was read."""
    changed = conditions.put(stored.status.conditions, condition).conditions
    status = {"conditions": [decoding.document(each) for each in changed]}
    patch = patches.merge({"status": status}, patches.unchanged(stored))
    await client.patch(resource, stored.metadata.name, subresource="status", patch=patch)
