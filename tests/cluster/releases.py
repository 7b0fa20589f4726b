"""Source of the last release, taken out of git into a folder."""

import os
import pathlib
import subprocess

import pytest

_PROJECT = pathlib.Path(__file__).parents[2]
_LAST = "a31d96099d407493"
"""Last revision of version 0.2.0."""
NEW = ""
"""Source folder of this version: that of the environment."""


def unpack(folder: pathlib.Path) -> str:
    """Return the source folder of the last release, unpacked into a folder; skip the test without its history."""
    revision = os.environ.get("DRACHMA_OLD_REVISION", _LAST)
    command = ["git", "archive", revision, "src"]
    archive = subprocess.run(command, cwd=_PROJECT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"git has no revision {revision}: {archive.stderr.decode().strip()}")
    target = folder / "release"
    target.mkdir()
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return str(target / "src")
