"""Installs Debian's Chromium for the browser tests, if it is absent. Prints where it is.

Usage: python scripts/install_chromium.py

Needs root and apt-get. Where either is missing, it says so and ends with 1: install a Chromium yourself, and name it in
$CHROMIUM if it is in no usual place.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core")


def find() -> pathlib.Path | None:
    """Return the Chromium of this machine, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return pathlib.Path(named)
    places = filter(None, map(shutil.which, NAMES))
    return next(map(pathlib.Path, places), None)


def install() -> pathlib.Path:
    """Return the Chromium of this machine, and install it first if it is absent.

    Raises:
        OSError: it cannot be installed here.
    """
    program = find()
    if program is not None:
        return program
    # Several test processes may come here at once, and apt-get allows one of them.
    with (pathlib.Path(tempfile.gettempdir()) / "drachma-install-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return find() or _install()


def _install() -> pathlib.Path:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise OSError("Chromium is not installed, and installing it needs root and apt-get")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        # The package lists may be absent or old.
        subprocess.run(["apt-get", "update"], env=environment, capture_output=True, check=False)
        outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    program = find()
    if program is None:
        raise OSError(f"apt-get install chromium failed: {outcome.stderr.strip().splitlines()[-1:]}")
    return program


def main() -> int:
    try:
        print(install())
    except OSError as error:
        print(f"install_chromium: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
