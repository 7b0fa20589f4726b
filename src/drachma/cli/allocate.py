"""``drachma allocate``: which devices claims would get, offline."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from drachma import errors
from drachma.cli import batch as batches


def allocate(
    batch: Annotated[bool, typer.Option("--batch", help="Answer cases, one JSON object a line.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="With --batch: measure, and add allocUs.")] = False,
) -> None:
    """Find devices for claims as kube-scheduler would."""
    if batch:
        _answer_batch(timing=timing)
        return
    raise errors.DecodeError("not yet")


def _answer_batch(*, timing: bool) -> None:
    is_good = True
    for answer in batches.answers(sys.stdin.buffer, timing=timing):
        sys.stdout.write(json.dumps(answer.document, ensure_ascii=False) + "\n")
        # Whoever feeds lines one by one waits for each answer.
        sys.stdout.flush()
        if answer.problem:
            typer.echo(f"drachma: {answer.problem}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)
