"""The numbered examples run: the command in each README prints what its expected.txt holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in (PROJECT / "examples").glob("[0-9]*/README.md"))


@pytest.mark.parametrize("example", [pytest.param(path, id=path.name) for path in EXAMPLES])
def test_example(example: Path) -> None:
    commands = re.findall(r"^    (drachma .*)$", (example / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert commands, "an example shows the command it is about"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=PROJECT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout + ran.stderr == (example / "expected.txt").read_text(encoding="utf-8")
