"""``--batch``: the answers to cases that come in as JSON lines, written as JSON lines."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import typer


def write(answers: Iterable[tuple[dict[str, Any], str]]) -> None:
    """Writes each answer as it comes; Exit 1 in the end if there was a line that is no case, and says which."""
    is_good = True
    for answer, problem in answers:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
        # Whoever feeds lines one by one waits for each answer.
        sys.stdout.flush()
        if problem:
            typer.echo(f"drachma: {problem}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)
