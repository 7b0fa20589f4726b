"""Pods without a node, by the reasons that the scheduler gives."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Final

from drachma.api.pod import Pod
from drachma.claims import conditions
from drachma.exporter import series
from drachma.exporter.series import Metric

UNTRIED: Final = "not tried yet"

_COUNTED: Final = re.compile(r"^\d+/\d+ nodes are available: (?P<reasons>.*?)\.(?: |$)")
_NUMBER: Final = re.compile(r"^\d+ (?:node\(s\) )?")
_NAMES: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\S*/\S+")
_LONGEST: Final = 80


def metrics(pods: Sequence[Pod], *, now: dt.datetime, limit: int) -> list[Metric]:
    """Return the metrics of pods that wait for a node."""
    waiting_pods = [each for each in pods if _is_waiting(each)]
    pairs = [(reason, each) for each in waiting_pods for reason in reasons_of(each)]
    frequent = series.most_frequent((reason for reason, _ in pairs), limit)
    return [
        Metric(
            name="drachma_pending_pods",
            help="Pods without a node by reason. A pod counts under each reason that the scheduler gives for it.",
            labels=("reason",),
            samples=series.tally((series.bounded(reason, frequent),) for reason, _ in pairs),
        ),
        Metric(
            name="drachma_oldest_pending_pod_age_seconds",
            help="Age of the oldest pod without a node; 0 if there is none.",
            samples={(): series.oldest_age(waiting_pods, now=now)},
        ),
    ]


def reasons_of(subject: Pod) -> Iterator[str]:
    """Yield the reasons why a pod has no node, without counts and names, so that equal reasons are equal texts."""
    scheduled = conditions.find(subject.status.conditions, "PodScheduled")
    if scheduled is None or scheduled.status == "True":
        yield UNTRIED
        return
    match = _COUNTED.match(scheduled.message)
    parts = match["reasons"].split(", ") if match else [scheduled.message or scheduled.reason]
    yield from sorted({_without_names(_NUMBER.sub("", part)) for part in parts})


def _without_names(text: str) -> str:
    first_line = (text.splitlines() or [""])[0]
    return _NAMES.sub("*", first_line)[:_LONGEST].strip() or "unknown"


def _is_waiting(subject: Pod) -> bool:
    is_done = subject.status.phase in ("Succeeded", "Failed")
    return not subject.spec.node_name and not is_done and subject.metadata.deletion_timestamp is None
