"""``drachma replay``: repeat scheduling decisions that a scheduler recorded."""

from __future__ import annotations

import pathlib
import sys
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options


def replay(
    file: Annotated[str, typer.Argument(help="A recording, - for standard input, or a folder of drachma dump.")],
    from_: Annotated[int, typer.Option("--from", min=1, help="Number of the first decision to replay.")] = 1,
    pod: Annotated[str, typer.Option(help="Replay decisions about this pod (NAMESPACE/NAME) only.")] = "",
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Replay recorded scheduling decisions, and show the first one that comes out differently.

    drachma scheduler --record and drachma up --record make recordings. Each decision is replayed on the state that the
    scheduler had, with its feature gates. A folder of drachma dump holds no decisions, only the statuses of pods:
    decisions about --pod, or about all pods that fit nowhere, are replayed on the dumped cluster.

    Exit code 0: all decisions come out as recorded. 1: one does not. 2: the recording cannot be read.
    """
    from drachma.cli import clusters, replaylines
    from drachma.scheduler import Settings
    from drachma.scheduler.recording import recordlines
    from drachma.simulate import replay as replaying
    from drachma.simulate import statereplay

    only = pod if "/" in pod or not pod else f"default/{pod}"
    try:
        if pathlib.Path(file).is_dir():
            enabled = gates.Gates.parse(feature_gates)
            state = clusters.read([file], None, enabled=enabled).state
            outcome = statereplay.replay(state, settings=Settings(gates=enabled), only=only)
        elif file == "-":
            outcome = replaying.replay(recordlines.decode(sys.stdin.buffer), first=from_, only=only)
        else:
            with pathlib.Path(file).open("rb") as recording:
                outcome = replaying.replay(recordlines.decode(recording), first=from_, only=only)
    except OSError as error:
        raise errors.DecodeError(f"{file}: {error.strerror or error}") from None
    except errors.DecodeError as error:
        raise errors.DecodeError(f"{file}: {error}") from None
    for note in replaylines.notes(outcome):
        typer.echo(f"drachma: {file}: {note}", err=True)
    clusters.write(replaylines.to_document(outcome), replaylines.lines(outcome), output)
    if outcome.difference is not None:
        raise typer.Exit(1)
