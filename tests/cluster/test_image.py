"""The recipe of the image, carried out without a container: its commands run in a folder, as a user without rights.

Base images come from a registry, which tests do not use. What the recipe installs is looked at instead: it has no
installer, writes nothing beside its sources, and runs as the user of the recipe from files that are not its own.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

PROJECT = pathlib.Path(__file__).parents[2]
RECIPE = (PROJECT / "deploy" / "Containerfile").read_text()
VENV = "/opt/drachma"


def _instructions() -> list[tuple[str, str]]:
    """Return the instructions of the recipe with their arguments, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", RECIPE)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def _argument(name: str) -> str:
    """Return the last argument of an instruction: later stages replace earlier ones."""
    return [value for key, value in _instructions() if key == name][-1]


def _find_python() -> str:
    """Return an interpreter that every user can run, as that of the base image; skip the test without one."""
    for each in (sys.executable, "/usr/bin/python3"):
        code = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
        with contextlib.suppress(OSError):
            if not subprocess.run([each, "-c", code], capture_output=True, check=False, user=65532, cwd="/").returncode:
                return each
    pytest.skip("no Python 3.11 with ensurepip that user 65532 can run")


@pytest.fixture(scope="module")
def root() -> Iterator[pathlib.Path]:
    """Return a folder in which the first stage was carried out; ``opt/drachma`` is what the image copies."""
    if os.geteuid() != 0:
        pytest.skip("only root can become the user of the image")
    python = _find_python()
    # Folders of pytest are closed to the user of the recipe.
    with tempfile.TemporaryDirectory(prefix="drachma-image-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        _carry_out(folder, python)
        yield folder


def _carry_out(folder: pathlib.Path, python: str) -> None:
    source = folder / "source"
    source.mkdir()
    for name, value in _instructions():
        if name == "COPY" and "--from" not in value:
            *origins, place = value.split()
            for origin in origins:
                target = source / (pathlib.Path(place) / pathlib.Path(origin).name if place == "./" else place)
                target.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if (PROJECT / origin).is_dir() else shutil.copy
                copy(PROJECT / origin, target)
        elif name == "RUN":
            command = value.replace(VENV, f"{folder}{VENV}").replace("python -m venv", f"{python} -m venv")
            done = subprocess.run(command, shell=True, cwd=source, capture_output=True, text=True, check=False)
            if "Temporary failure in name resolution" in done.stderr or "No matching distribution" in done.stderr:
                pytest.skip("packages cannot be fetched here")
            assert done.returncode == 0, done.stderr
    shutil.rmtree(source)


def _run(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the entry point of the image as its user."""
    user, group = map(int, _argument("USER").split(":"))
    program = f"{root}{VENV}/bin/{shlex.split(_argument('ENTRYPOINT').strip('[]'))[0]}"
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{root}{VENV}/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        timeout=300,
        user=user,
        group=group,
        extra_groups=[],
    )


def test_the_image_runs_as_its_user_and_changes_nothing(root: pathlib.Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    printed = _run(root, "manifests", "scheduler")
    assert printed.returncode == 0, printed.stderr
    assert "kind: Deployment" in printed.stdout
    version = _run(root, "--version")
    assert version.returncode == 0, version.stderr
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


def test_the_image_has_no_installer_and_no_sources_of_tests(root: pathlib.Path) -> None:
    installed = {path.name for path in (root / VENV.lstrip("/")).glob("lib/*/site-packages/*")}
    assert not installed & {"pip", "hatchling", "packaging", "pluggy", "tests", "bench", "pytest"}
    assert "drachma" in installed


def test_every_package_is_checked_by_its_hash() -> None:
    (first,) = [value for name, value in _instructions() if name == "RUN" and "requirements" in value]
    assert "--require-hashes" in first
    assert _argument("USER") == "65532:65532"
