"""Ending pods on purpose: the condition that says why, and the deletion of this very pod.

What reads ``DisruptionTarget``, Jobs first of all, tells apart pods that failed from pods that were taken away.
"""

import datetime as dt
from typing import Any, Final

from drachma import errors
from drachma.api import meta, pod
from drachma.client import Client, patches

CONDITION: Final = "DisruptionTarget"

_ENDED: Final = ("Succeeded", "Failed")


def has_ended(of: pod.Pod) -> bool:
    """Whether all of a pod's containers have run, for good or bad."""
    return of.status.phase in _ENDED


def condition(of: pod.Pod, *, reason: str, message: str, now: dt.datetime) -> pod.PodCondition | None:
    """The condition that a pod is to have; None if it has it."""
    known = next((each for each in of.status.conditions if each.type == CONDITION), None)
    if known is not None and (known.status, known.reason, known.message) == ("True", reason, message):
        return None
    since = known.last_transition_time if known is not None and known.status == "True" else now.replace(microsecond=0)
    return pod.PodCondition(
        type=CONDITION,
        status="True",
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=of.metadata.generation,
    )


async def write_status(client: Client, of: pod.Pod, content: dict[str, Any]) -> pod.Pod:
    """Changes the status of this very pod; conditions are merged by their type."""
    return await client.patch(
        pod.Pod,
        of.metadata.name,
        patch=patches.strategic({"status": content}, patches.same(of)),
        namespace=of.metadata.namespace,
        subresource="status",
    )


async def delete(client: Client, known: meta.Object, *, grace_period_seconds: int | None = None) -> bool:
    """Deletes this very pod; False if it was gone already, perhaps replaced by another of its name."""
    try:
        await client.delete(
            pod.Pod,
            known.metadata.name,
            namespace=known.metadata.namespace,
            preconditions=patches.same(known),
            grace_period_seconds=grace_period_seconds,
        )
    except (errors.ObjectNotFoundError, errors.ObjectConflictError):
        return False
    return True
