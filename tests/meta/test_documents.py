"""The README and the guides in docs/ run: their console sessions give the output they show."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").glob("*.md")),
    *sorted((PROJECT / "docs" / "reference").glob("*.md")),
]
SESSION = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ((\w+)\.py)$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sessions() -> Sequence[object]:
    """Every command of every console block with the output shown below it."""
    found = []
    for document in DOCUMENTS:
        for block in SESSION.findall(document.read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(pytest.param(command, output, id=f"{document.name}: {command}"))
    return found


def programs() -> Sequence[object]:
    """Every block with the files of its document so far; one whose first line is ``# name.py`` is such a file."""
    found = []
    for document in DOCUMENTS:
        files: dict[str, str] = {}
        for block in PYTHON.findall(document.read_text(encoding="utf-8")):
            if name := FILE.match(block):
                files = {**files, name[1]: block}
            found.append(pytest.param(block, files, id=f"{document.name}: {block.splitlines()[0]}"))
    return found


@pytest.mark.parametrize(("command", "output"), sessions())
def test_console_sessions(command: str, output: str) -> None:
    if shlex.split(command)[0] == "make":
        targets = (PROJECT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{shlex.split(command)[1]}:", targets, re.MULTILINE), "the Makefile has no such target"
        return
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=PROJECT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout + ran.stderr == output


@pytest.mark.parametrize(("program", "files"), programs())
def test_python_blocks(program: str, files: Mapping[str, str], tmp_path: Path) -> None:
    """What is a file is a test that passes, or a module that can be imported; all else runs."""
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    match FILE.match(program):
        case None:
            arguments = ["-c", program]
        case file if file[1].startswith("test_"):
            # Without the plugins that only drachma's own tests have.
            arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", file[1]]
        case file:
            arguments = ["-c", f"import {file[2]}"]
    cwd = tmp_path if files else PROJECT
    ran = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout


def test_the_readme_names_the_test_command_that_ci_runs() -> None:
    ci = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in ci
    assert "make test" in (PROJECT / "README.md").read_text(encoding="utf-8")


WALKS = (
    (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Walks")[2].partition("\n## ")[0]
)
ROOMS = ("drachma", "drachma.server", "drachma.scheduler")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)(?:\.[A-Z]\w+|\.\*)?`", WALKS))))
def test_walks_name_modules_that_exist(name: str) -> None:
    paths = [PROJECT / "src" / Path(*f"{room}.{name}".split(".")) for room in ROOMS]
    assert any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths)


@pytest.mark.parametrize(("title", "most"), [("kubectl", 15), ("A pod", 15), ("A selector", 8)])
def test_walks_are_short(title: str, most: int) -> None:
    walk = re.search(rf"^### {title}.*?(?=^### |\Z)", WALKS, re.MULTILINE | re.DOTALL)
    assert walk is not None
    assert 1 < len(re.findall(r"^\d+\. ", walk[0], re.MULTILINE)) <= most
