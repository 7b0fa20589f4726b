"""First steps of the README: the commands of its first block, run as a user with a home directory of their own."""

from __future__ import annotations

import pathlib
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from scripts import recording

PROJECT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


class TimedStep(NamedTuple):
    """A command of the README, its output, and the seconds that it took."""

    command: str
    output: str
    seconds: float


def commands() -> list[str]:
    """Return the commands of the first block of the README, without comments."""
    block = _BLOCK.search((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert block is not None, "the README begins with a block of commands"
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


def questions() -> list[str]:
    """Return the commands of the page "Get started" that ask a running cluster."""
    text = (PROJECT / "docs" / "get-started.md").read_text(encoding="utf-8")
    block = _BLOCK.search(text)
    assert block is not None, "the page has a block of questions"
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


def run(home: pathlib.Path) -> Iterator[TimedStep]:
    """Run all commands after the installation, and the questions of "Get started" before the cluster is stopped."""
    installation, *others, end = commands()
    assert installation.startswith("pipx install"), installation
    for command in (*others, *questions(), end):
        started = time.monotonic()
        (step,) = recording.run(home, [command])
        yield TimedStep(command, step.output, time.monotonic() - started)
