"""``drachma allocate --batch``: cases as JSON lines in, one answer a line out, for comparisons and measurements."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from drachma import errors
from drachma.cli import case


class Answer(NamedTuple):
    """The answer to one line; ``problem`` says what is wrong with a line that is not a case."""

    document: dict[str, Any]
    problem: str = ""


def answers(lines: Iterable[bytes], *, timing: bool) -> Iterator[Answer]:
    """An answer to every line that is not blank. With ``timing``, ``allocUs`` is the best of the line's repeats."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _answer(line, number, timing=timing)


def _answer(line: bytes, number: int, *, timing: bool) -> Answer:
    name = f"line {number}"
    try:
        document = _parse(line)
        if isinstance(document.get("name"), str):
            name = document["name"]
        found = case.Case(document)
    except errors.DrachmaError as error:
        return Answer({"name": name, "error": f"line {number}: {error}"}, f"line {number}: {error}")
    if not timing:
        return Answer({"name": name, **found.answer()})
    best = float("inf")
    for _ in range(found.repeat):
        begin = time.perf_counter_ns()
        outcome = found.run()
        best = min(best, (time.perf_counter_ns() - begin) / 1000)
    return Answer({"name": name, **case.recorded(outcome), "allocUs": best})


def _parse(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise errors.DecodeError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise errors.DecodeError("expected an object with a case")
    return document
