"""Prints the times of three ways to start, each in a clean folder and from nothing: see :data:`WAYS`.

Packages come from pip's cache if it has them, as they do for a user who has installed something before. The wheel of
this project is built from the clone. The end is an error if a way takes longer than a minute.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.newcomer import steps

MOST_SECONDS = 60.0

_INSTALL = "python -m venv env && env/bin/pip install --quiet --disable-pip-version-check"
_RUNNING = "until env/bin/drachma get pods | grep -q 'trainer *Running'; do sleep 0.2; done"


class Way(NamedTuple):
    """A way to start: its title, its commands, and the text that its last command prints."""

    title: str
    commands: Sequence[str]
    want: str


WAYS = (
    Way(
        "from a clone to a running pod with a GPU",
        (
            f"git clone --quiet {steps.PROJECT} clone",
            f"{_INSTALL} ./clone",
            "env/bin/drachma up --detach",
            "env/bin/drachma example first-steps | env/bin/drachma apply -f -",
            f"{_RUNNING}; env/bin/drachma get pods",
        ),
        "gpu-0,gpu-1",
    ),
    Way(
        "from pip install to a passing driver test",
        (
            f"{_INSTALL} '{steps.PROJECT}[testing]'",
            "env/bin/drachma driver new lamp.example.com",
            "cd lamp && ../env/bin/python -m pytest -q",
        ),
        "1 passed",
    ),
    Way(
        "from nothing to an explained pending pod",
        (
            f"{_INSTALL} {steps.PROJECT}",
            "env/bin/drachma up --detach",
            "env/bin/drachma example first-steps | env/bin/drachma apply -f -",
            "env/bin/drachma explain pod giant",
        ),
        "smallest change: lower the count",
    ),
)


def main() -> None:
    """Try all ways, print their times, and exit with 1 if one fails or takes too long."""
    slow = [way.title for way in WAYS if _try(way) > MOST_SECONDS]
    if slow:
        sys.exit(f"longer than {MOST_SECONDS:.0f} s: {'; '.join(slow)}")


def _try(way: Way) -> float:
    """Run the commands of a way, print their times, and return the sum. Exits if one prints something else."""
    total, output = 0.0, ""
    sys.stdout.write(f"{way.title}\n")
    with tempfile.TemporaryDirectory(prefix="drachma-newcomer-") as home:
        try:
            for command in way.commands:
                begin = time.monotonic()
                output = _run(command, pathlib.Path(home))
                seconds = time.monotonic() - begin
                total += seconds
                sys.stdout.write(f"  {seconds:6.1f} s  {command.replace(str(steps.PROJECT), '.')}\n")
                sys.stdout.flush()
        finally:
            _run("env/bin/drachma down || true", pathlib.Path(home))
    if way.want not in output:
        sys.exit(f"{way.title}: expected {way.want!r} in the last output:\n{output}")
    sys.stdout.write(f"  {total:6.1f} s  in all\n")
    return total


def _run(command: str, home: pathlib.Path) -> str:
    """Return the output of a command in a home directory of its own. Only pip's cache is shared with other users."""
    cache = os.environ.get("PIP_CACHE_DIR") or str(pathlib.Path("~/.cache/pip").expanduser())
    environment = {**os.environ, "HOME": str(home), "PIP_CACHE_DIR": cache}
    for name in ("KUBECONFIG", "XDG_STATE_HOME", "VIRTUAL_ENV", "PYTHONPATH"):
        environment.pop(name, None)
    ended = subprocess.run(
        ["bash", "-c", command], env=environment, cwd=home, capture_output=True, text=True, timeout=600, check=False
    )
    return ended.stdout + ended.stderr


if __name__ == "__main__":
    main()
