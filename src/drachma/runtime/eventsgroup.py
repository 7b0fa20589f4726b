"""Events of ``events.k8s.io``, for components whose role allows events of that group only, such as recent Kueue's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import codec, event, meta
from drachma.client import target

EVENTS: Final = target.Target(
    group="events.k8s.io", versions=("v1",), plural="events", kind="Event", namespaced=True, model=meta.Object
)
_MOST_BYTES: Final = 1024
"""Limit of a note in this group."""


def document(new: event.Event, now: datetime) -> dict[str, Any]:
    """Return a core event in the form of this group, which has no counts."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": new.metadata.name, "namespace": new.metadata.namespace},
        "eventTime": meta.micro_time_text(now),
        "reportingController": new.reporting_component,
        "reportingInstance": new.reporting_instance or new.reporting_component,
        "action": new.reason,
        "reason": new.reason,
        "regarding": codec.encode(new)["involvedObject"],
        "note": new.message.encode()[:_MOST_BYTES].decode(errors="ignore"),
        "type": new.type,
    }


def series(new: event.Event, now: datetime) -> Mapping[str, Any]:
    """Return the change of an event of this group that has happened again."""
    return {"series": {"count": new.count, "lastObservedTime": meta.micro_time_text(now)}}
