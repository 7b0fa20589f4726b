"""Dependencies: locked with hashes, under licences that are allowed, and audited by a script that says what it did."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tomllib
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = pathlib.Path(__file__).parents[2]
LOCKS = {file.stem: file for file in sorted((PROJECT / "requirements").glob("*.txt"))}
GROUPS = {"runtime": ("build",), "dev": ("build", "dev"), "docs": ("build", "docs"), "supply": ("supply",)}
"""Dependency groups in each lock file; all but the last have the dependencies of drachma, too."""


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROJECT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


licences = _load("check_licences")


def _pins(lock: str) -> dict[str, str]:
    return {pin.name: pin.version for pin in licences.read_pins([LOCKS[lock]])}


def _requirements(lock: str) -> list[Requirement]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    texts = [text for group in GROUPS[lock] for text in project["dependency-groups"][group]]
    if lock != "supply":
        texts += project["project"]["dependencies"]
    return list(map(Requirement, texts))


def test_there_is_a_lock_for_each_use() -> None:
    assert LOCKS.keys() == GROUPS.keys()


@pytest.mark.parametrize("lock", GROUPS)
def test_every_package_has_hashes_and_no_address(lock: str) -> None:
    text = LOCKS[lock].read_text(encoding="utf-8")
    for entry in re.split(r"\n(?=\S)", text.strip()):
        head, *hashes = [line.strip().removesuffix("\\").strip() for line in entry.splitlines()]
        assert re.fullmatch(r"[a-z0-9.-]+==[^ ]+(?: ; .+)?", head), f"{lock}: not a pin: {head}"
        assert hashes, f"{lock}: no hash: {head}"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), f"{lock}: {head}"


@pytest.mark.parametrize("lock", GROUPS)
def test_locks_are_up_to_date(lock: str) -> None:
    """``make lock`` was run after the last change of pyproject.toml."""
    pins = _pins(lock)
    for requirement in _requirements(lock):
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"{lock}: {requirement.name} is not locked; run make lock"
        assert version in requirement.specifier, f"{lock}: {requirement} is locked to {version}; run make lock"


@pytest.mark.parametrize("lock", ["runtime", "docs"])
def test_locks_agree(lock: str) -> None:
    dev = _pins("dev")
    assert {name: version for name, version in _pins(lock).items() if dev.get(name, version) != version} == {}


def test_everything_is_installed_by_hash() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    commands = [line for line in makefile.splitlines() if "pip install" in line]
    assert commands
    for command in commands:
        assert "--require-hashes" in command or "--no-deps --no-build-isolation --editable ." in command, command


def test_licences_are_allowed() -> None:
    findings = list(licences.find_licences(_pins("dev")))
    assert [finding for finding in findings if not finding.is_allowed] == []
    checked = {finding.package for finding in findings}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {canonicalize_name(Requirement(text).name) for text in project["dependencies"]} <= checked


@pytest.mark.parametrize(
    ("licence", "want"),
    [
        pytest.param("MIT", True, id="allowed"),
        pytest.param("MIT AND GPL-3.0-only", False, id="both-count"),
        pytest.param("GPL-3.0-only OR MIT", True, id="one-is-enough"),
        pytest.param("GPL-3.0-only", False, id="refused"),
        pytest.param("", False, id="none"),
    ],
)
def test_expressions_of_licences(licence: str, want: bool) -> None:
    assert licences.Finding("x", licence).is_allowed is want


GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("output", "code", "message"),
    [
        pytest.param([GOOD], 0, "1 of 1 packages looked up, 0 with known vulnerabilities", id="good"),
        pytest.param([GOOD, BAD], 1, "b 2: PYSEC-1, fixed in 3", id="vulnerable"),
        pytest.param([GOOD, UNKNOWN], 2, "1 packages could not be looked up", id="not-looked-up"),
        pytest.param(None, 2, "the database cannot be reached: connection refused", id="unreachable"),
    ],
)
def test_audit(tmp_path: pathlib.Path, output: list[dict[str, Any]] | None, code: int, message: str) -> None:
    """The script tells what pip-audit found from what it could not look up."""
    program = tmp_path / "pip-audit"
    text = "" if output is None else json.dumps({"dependencies": output})
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\necho connection refused >&2\n")
    program.chmod(0o755)
    script = PROJECT / "scripts" / "audit.py"
    command = [sys.executable, str(script), str(program), "lock.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert message in done.stdout + done.stderr
