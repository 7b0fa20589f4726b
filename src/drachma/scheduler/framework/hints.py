"""Queueing hints: the changes in the cluster that can help a rejected pod, so that only they wake it.

Every plugin names the changes that can end its rejection, and for each change a test with the pod and the changed
object. The queue asks only the plugins that rejected a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from drachma.api import pod
from drachma.scheduler.snapshot.changes import Action, Change, Resource

__all__ = ["DYNAMIC_RESOURCES", "GANG_SCHEDULING", "Action", "Change", "Hint", "Resource", "always"]

DYNAMIC_RESOURCES: Final = "DynamicResources"
"""Plugin that keeps pods out of the queue until their claims exist."""

GANG_SCHEDULING: Final = "GangScheduling"
"""Plugin whose hints wake the pods of a gang that does not fit as a whole."""


class Hint(NamedTuple):
    """Sort of change that can end a plugin's rejection, and the test that a change helps a pod."""

    resource: Resource
    actions: Action
    helps: Callable[[pod.Pod, Any, Any], bool]


def always(_pod: pod.Pod, _old: object, _new: object) -> bool:
    """Return True: the change helps every pod."""
    return True
