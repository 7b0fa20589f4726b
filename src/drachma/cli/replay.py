"""``drachma replay``: decisions that a scheduler recorded, made once more."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from drachma import errors
from drachma.api import codec, gates, meta
from drachma.cli import clusters, explain, options
from drachma.scheduler import Settings
from drachma.scheduler.recording import recordlines
from drachma.simulate import podexplanation, statereplay
from drachma.simulate import replay as replaying


def replay(
    file: Annotated[str, typer.Argument(help="A recording, - for standard input, or a folder of drachma dump.")],
    from_: Annotated[int, typer.Option("--from", min=1, help="Begin with the decision of this number.")] = 1,
    pod: Annotated[str, typer.Option(help="Only decisions about this pod (NAMESPACE/NAME).")] = "",
    output: Annotated[options.Format | None, typer.Option("-o", "--output", help="As a document.")] = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Repeat the decisions of a recording, and show the first that comes out otherwise.

    Recordings are made by drachma scheduler --record and drachma up --record. Each decision is repeated on what the
    scheduler knew then, and with the feature gates that it had. A folder of drachma dump says no more than what the
    statuses of pods tell: decisions are repeated on the cluster as it was dumped, about --pod, or about all pods that
    fit nowhere. Exit code 0: all come out as recorded. 1: one does not. 2: the recording cannot be read.
    """
    only = pod if "/" in pod or not pod else f"default/{pod}"
    try:
        if pathlib.Path(file).is_dir():
            enabled = gates.Gates.parse(feature_gates)
            state = clusters.read([file], None, enabled=enabled).state
            outcome = statereplay.replay(state, chosen=Settings(gates=enabled), only=only)
        elif file == "-":
            outcome = replaying.replay(recordlines.decode(sys.stdin.buffer), first=from_, only=only)
        else:
            with pathlib.Path(file).open("rb") as opened:
                outcome = replaying.replay(recordlines.decode(opened), first=from_, only=only)
    except OSError as error:
        raise errors.DecodeError(f"{file}: {error.strerror or error}") from None
    except errors.DecodeError as error:
        raise errors.DecodeError(f"{file}: {error}") from None
    for note in _notes(outcome):
        typer.echo(f"drachma: {file}: {note}", err=True)
    clusters.write(_document(outcome), _lines(outcome), output)
    if outcome.difference is not None:
        raise typer.Exit(1)


def _notes(outcome: replaying.Replay) -> Iterator[str]:
    """What is to be known about the recording itself."""
    if outcome.torn:
        yield f"line {outcome.torn}: has no end, and is left out: whoever recorded was stopped in the middle of it"
    if outcome.missed:
        yield f"{outcome.missed} decisions are missing: writing them was too slow"


def _document(outcome: replaying.Replay) -> dict[str, Any]:
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


def _outcome(outcome: replaying.Outcome) -> dict[str, Any]:
    fields = {"node": outcome.node, "reasons": outcome.reasons, "error": outcome.error}
    document: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if outcome.allocations:
        document["allocations"] = {
            each.claim: json.loads(codec.encode_part(each.result)) for each in outcome.allocations
        }
    return document


def _lines(outcome: replaying.Replay) -> Iterator[str]:
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
    yield from (f"  {line}" for line in explain.pod_lines(difference.explanation))


def _outcome_lines(title: str, outcome: replaying.Outcome, other: replaying.Outcome) -> Iterator[str]:
    if not outcome.node:
        yield f"  {title}: {outcome.reasons or outcome.error}"
        return
    yield f"  {title}: on node {outcome.node}"
    devices = list(_devices(outcome))
    for device in devices:
        yield f"    {device.claim}, {device.request}: {device.device}"
    if outcome.node == other.node and devices == list(_devices(other)):
        # The same devices, and something else about them.
        for each in outcome.allocations:
            yield f"    {each.claim}: {codec.encode_part(each.result).decode()}"


def _devices(outcome: replaying.Outcome) -> Iterator[podexplanation.Device]:
    for each in outcome.allocations:
        yield from podexplanation.devices_of(each.claim, each.result)
