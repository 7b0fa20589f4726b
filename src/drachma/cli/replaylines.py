"""Results of replaying decisions as lines of text and as documents, for ``drachma replay``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from drachma.api import codec, meta
from drachma.simulate import explanationlines, podexplanation, replay


def notes(outcome: replay.Replay) -> Iterator[str]:
    """Yield remarks about the recording itself."""
    if outcome.torn:
        yield f"line {outcome.torn}: is incomplete and is left out: recording stopped in the middle of it"
    if outcome.missed:
        yield f"{outcome.missed} decisions are missing: the disk was too slow to record them"


def to_document(outcome: replay.Replay) -> dict[str, Any]:
    """Return a replay as a document."""
    document: dict[str, Any] = {"decisions": outcome.decisions}
    difference = outcome.difference
    if difference is not None:
        document["difference"] = {
            "decision": difference.number,
            "time": meta.time_text(difference.time),
            "pod": difference.pod,
            "recorded": _outcome(difference.recorded),
            "replayed": _outcome(difference.replayed),
            "explanation": podexplanation.to_document(difference.explanation),
            **({"recordedNode": difference.about_node} if difference.about_node else {}),
        }
    return document


def _outcome(outcome: replay.Outcome) -> dict[str, Any]:
    fields = {"node": outcome.node, "reasons": outcome.reasons, "error": outcome.error}
    document: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if outcome.allocations:
        document["allocations"] = {
            each.claim: json.loads(codec.encode_part(each.result)) for each in outcome.allocations
        }
    return document


def lines(outcome: replay.Replay) -> Iterator[str]:
    """Yield the lines that describe a replay."""
    difference = outcome.difference
    same = outcome.decisions - (difference is not None)
    yield f"{same} {'decision comes' if same == 1 else 'decisions come'} out as recorded"
    if difference is None:
        return
    yield f"decision {difference.number}, {meta.time_text(difference.time)}, pod {difference.pod}: comes out otherwise"
    yield from _outcome_lines("recorded", difference.recorded, difference.replayed)
    yield from _outcome_lines("now", difference.replayed, difference.recorded)
    if difference.about_node:
        yield f"  node {difference.recorded.node}: {difference.about_node}"
    yield from (f"  {line}" for line in explanationlines.pod_lines(difference.explanation))


def _outcome_lines(title: str, outcome: replay.Outcome, other: replay.Outcome) -> Iterator[str]:
    if not outcome.node:
        yield f"  {title}: {outcome.reasons or outcome.error}"
        return
    yield f"  {title}: on node {outcome.node}"
    devices = list(_devices(outcome))
    for device in devices:
        yield f"    {device.claim}, {device.request}: {device.device}"
    if outcome.node == other.node and devices == list(_devices(other)):
        # The devices are equal, so the difference is in another field of the allocation.
        for each in outcome.allocations:
            yield f"    {each.claim}: {codec.encode_part(each.result).decode()}"


def _devices(outcome: replay.Outcome) -> Iterator[podexplanation.Device]:
    for each in outcome.allocations:
        yield from podexplanation.devices_of(each.claim, each.result)
