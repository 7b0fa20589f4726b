"""Programs of Debian packages: the installed ones, or else unpacked into a folder outside the project, without root.

``apt-get download`` checks a package by the signed index of its archive. Nothing is installed.
"""

import pathlib
import shutil
import subprocess
import tempfile

from tests import gobuild
from tests.gobuild import MissingError

_CACHE = gobuild.cache_folder("debian", "DRACHMA_DEBIAN_CACHE")
_SECONDS = 300.0
_COMMAND = "python -m tests.cluster.programs prometheus"

__all__ = ["MissingError", "fetch", "find"]


def find(program: str, package: str) -> pathlib.Path:
    """Return the path of a program that is installed, or that ``fetch`` has unpacked.

    Raises:
        MissingError: it is neither.
    """
    installed = shutil.which(program)
    unpacked = _CACHE / package / "usr" / "bin" / program
    if installed is None and not unpacked.exists():
        raise MissingError(f"{program} is absent: install Debian's package {package}, or run: {_COMMAND}")
    return pathlib.Path(installed or unpacked)


def fetch(program: str, package: str) -> pathlib.Path:
    """Return the path of a program, after its package was downloaded and unpacked if it is not there yet.

    Raises:
        MissingError: there is no apt-get, or it cannot download the package.
    """
    try:
        return find(program, package)
    except MissingError:
        if shutil.which("apt-get") is None:
            raise
    gobuild.report(f"fetching Debian's package {package}")
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
        done = subprocess.run(
            ["apt-get", "download", package],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        files = sorted(pathlib.Path(folder).glob("*.deb"))
        if done.returncode or not files:
            reason = (done.stderr.strip().splitlines() or ["apt-get wrote no file"])[-1]
            raise MissingError(f"{program}: Debian's package {package} cannot be fetched: {reason}")
        unpacked = pathlib.Path(folder) / package
        subprocess.run(["dpkg", "-x", str(files[0]), str(unpacked)], check=True)
        shutil.rmtree(_CACHE / package, ignore_errors=True)
        unpacked.replace(_CACHE / package)
    return find(program, package)
