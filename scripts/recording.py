"""Record the first steps of the README as an SVG, from the true output of the commands.

python scripts/recording.py docs/pictures/first-steps.svg
"""

from __future__ import annotations

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

COMMANDS = (
    "drachma up --detach",
    "drachma example first-steps | drachma apply -f -",
    "drachma get pods",
    "drachma explain pod giant",
    "drachma down",
)
_KEY = re.compile(r"key=[\w-]+")
"""Start key of the dashboard."""
_COLUMNS = 104
_LINE = 18
_CHARACTER = 8.4
_MARGIN = 16


class Step(NamedTuple):
    """A command and its output."""

    command: str
    output: str


def run(home: pathlib.Path, commands: Sequence[str] = COMMANDS) -> Iterator[Step]:
    """Run commands one after the other as a user with a home directory of their own, and yield their outputs."""
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "HOME": str(home), "PATH": path, "COLUMNS": str(_COLUMNS)}
    for name in ("KUBECONFIG", "XDG_STATE_HOME"):
        environment.pop(name, None)
    for command in commands:
        ended = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        yield Step(command, _KEY.sub("key=...", ended.stdout))


def draw(steps: Sequence[Step]) -> str:
    """Return the steps as the picture of a terminal."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        lines.append(("command", f"$ {step.command}"))
        for line in step.output.splitlines():
            indent = " " * (len(line) - len(line.lstrip()) + 4)
            wrapped = textwrap.wrap(
                line, _COLUMNS, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=False
            )
            lines += [("output", each) for each in wrapped or [""]]
        lines.append(("output", ""))
    width, height = int(_COLUMNS * _CHARACTER) + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    rows = [
        f'<text class="{kind}" x="{_MARGIN}" y="{_MARGIN + (number + 1) * _LINE - 4}">{html.escape(text)}</text>'
        for number, (kind, text) in enumerate(lines)
        if text
    ]
    style = (
        "text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre; }"
        " .command { fill: #7ee787; } .output { fill: #e6edf3; }"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>drachma up, apply, get, explain and down in a terminal</title>",
            f"<style>{style}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    """Write the picture into the file that the command line names."""
    with tempfile.TemporaryDirectory(prefix="drachma-") as home:
        steps = list(run(pathlib.Path(home)))
    pathlib.Path(sys.argv[1]).write_text(draw(steps), encoding="utf-8")


if __name__ == "__main__":
    main()
