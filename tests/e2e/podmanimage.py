"""An image for podman that needs no registry: some of this machine's own commands, with the libraries they take."""

import io
import pathlib
import re
import shutil
import subprocess
import tarfile

IMAGE = "localhost/drachma-test:2"
_COMMANDS = ("sh", "cat", "ls", "env", "sleep", "tar", "ln", "id")


def missing() -> str:
    """Why there is no podman to be had here; empty where there is one."""
    absent = [name for name in ("podman", "runc") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not installed (apt-get install podman runc)" if absent else ""


def load() -> str:
    """Imports the image, if it is not there; its name."""
    if subprocess.run(["podman", "image", "exists", IMAGE], check=False, timeout=120).returncode != 0:
        subprocess.run(["podman", "import", "-", IMAGE], input=_archive(), check=True, capture_output=True, timeout=300)
    return IMAGE


def remove_containers(*, below: pathlib.Path) -> None:
    """Removes the containers of agents that keep their files below a folder: they outlive agents."""
    form = '{{.ID}} {{index .Labels "dev.drachma.root"}}'
    words = ["podman", "ps", "--all", "--filter", "label=dev.drachma.root", "--format", form]
    listed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.split()[1].startswith(str(below))]
    if names:
        subprocess.run(["podman", "rm", "--force", "--time", "0", *names], check=True, capture_output=True, timeout=300)


def _archive() -> bytes:
    files: dict[str, pathlib.Path] = {}
    for command in _COMMANDS:
        found = shutil.which(command)
        assert found is not None, command
        files[f"bin/{command}"] = pathlib.Path(found).resolve()
        linked = subprocess.run(["ldd", found], capture_output=True, text=True, check=True, timeout=60).stdout
        for path in re.findall(r"(/\S+)", linked):
            files[path.lstrip("/")] = pathlib.Path(path).resolve()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name in ("etc", "tmp", "proc", "sys", "dev", "var", "run"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for name, path in files.items():
            archive.add(path, arcname=name)
    return written.getvalue()
