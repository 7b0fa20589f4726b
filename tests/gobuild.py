"""Programs of Go modules, built once and kept outside the project."""

import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

_LONGEST_SECONDS = 5400.0
_REPORT_SECONDS = 30.0


class MissingError(Exception):
    """A program cannot be built on this machine; the text says what is missing."""


def cache_folder(name: str, variable: str) -> pathlib.Path:
    """Return the folder that programs are kept in: the one that an environment variable names, or one in the home."""
    return pathlib.Path(os.environ.get(variable) or f"~/.cache/drachma/{name}").expanduser()


def go_command(program: str) -> str:
    """Return the path of the go command.

    Raises:
        MissingError: Go is not installed.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingError(f"{program}: Go is not installed")
    return go


def build(program: str, package: str, module: pathlib.Path, binary: pathlib.Path, flags: Sequence[str] = ()) -> None:
    """Build a package of a module, after its modules were fetched, unless the binary exists.

    Raises:
        MissingError: there is no Go, or the modules cannot be fetched.
        RuntimeError: the package does not build, or not in time.
    """
    if binary.exists():
        return
    go = go_command(program)
    binary.parent.mkdir(parents=True, exist_ok=True)
    problems = _run([go, "list", "-deps", package], module, title=f"fetching modules of {program}")
    if problems:
        raise MissingError(f"{program}: its modules cannot be fetched: {problems.strip().splitlines()[-1]}")
    unfinished = binary.with_name(f".{binary.name}-{os.getpid()}")
    problems = _run(
        [go, "build", *flags, "-o", str(unfinished), package],
        module,
        title=f"building {program} (once; large ones take minutes)",
    )
    if problems:
        raise RuntimeError(f"{program} does not build: {problems}")
    unfinished.replace(binary)


def report(text: str) -> None:
    """Print a line past what pytest captures, because a user who waits for minutes needs to see progress."""
    print(f"go: {text}", file=sys.__stderr__, flush=True)


def _run(command: Sequence[str], module: pathlib.Path, *, title: str) -> str:
    """Run a command in the folder of a module with progress lines; return its errors if it fails."""
    begun = time.monotonic()
    report(title)
    with subprocess.Popen(command, cwd=module, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while True:
            try:
                _, problems = process.communicate(timeout=_REPORT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - begun
                if seconds > _LONGEST_SECONDS:
                    process.kill()
                    raise RuntimeError(f"{title}: not done in {seconds:.0f} s") from None
                report(f"{title}: for {seconds:.0f} s")
    report(f"{title}: {time.monotonic() - begun:.0f} s")
    return "" if process.returncode == 0 else problems or f"exit code {process.returncode}"
