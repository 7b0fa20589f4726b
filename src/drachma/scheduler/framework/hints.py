"""Queueing hints: which changes in the cluster can help a pod that was rejected, so that only they wake it.

Every plugin names the changes that can turn its rejection around, and for each a test that knows the pod and the
change. The queue asks only the plugins that rejected a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from drachma.api import pod
from drachma.scheduler.snapshot.changes import Action, Change, Resource

__all__ = ["Action", "Change", "Hint", "Resource", "always"]


class Hint(NamedTuple):
    """A kind of change that a plugin's rejection can hang on, and the test whether one of them helps a pod."""

    resource: Resource
    actions: Action
    helps: Callable[[pod.Pod, Any, Any], bool]


def always(_pod: pod.Pod, _old: object, _new: object) -> bool:
    """The test of a change that helps any pod."""
    return True
