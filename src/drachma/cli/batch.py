"""``--batch``: answers to cases, as JSON lines."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import typer


def write(answers: Iterable[tuple[dict[str, Any], str]]) -> None:
    """Print each answer with its line's problem, if any. At the end, exit with code 1 if a line was no case."""
    is_good = True
    for answer, problem in answers:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
        # A client that sends lines one by one waits for each answer.
        sys.stdout.flush()
        if problem:
            typer.echo(f"drachma: {problem}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)
