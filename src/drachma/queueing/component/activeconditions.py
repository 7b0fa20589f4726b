"""Writes of the Active conditions of admission checks and clusters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drachma.client import patches, protocol, target
from drachma.queueing import conditions
from drachma.queueing.checks import activity
from drachma.queueing.kinds import decoding


async def write(
    client: protocol.Client, resource: target.Target[Any], stored: Any, state: activity.Activity, now: datetime
) -> None:
    """Set the Active condition of an object without a namespace, unless it has it, in the version that was read."""
    generation = stored.metadata.generation or 1
    condition = activity.active_condition(stored.status.conditions, state, now, generation=generation)
    if condition is None:
        return
    changed = conditions.put(stored.status.conditions, condition).conditions
    status = {"conditions": [decoding.document(each) for each in changed]}
    patch = patches.merge({"status": status}, patches.unchanged(stored))
    await client.patch(resource, stored.metadata.name, subresource="status", patch=patch)
