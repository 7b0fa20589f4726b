"""Programs that drachma is tried with, built from Go modules: a driver on upstream's helper, a runtime, the kubelet,
the controllers of JobSets and LeaderWorkerSets, and helm.

``python -m tests.peers.programs`` builds those of this project and the kubelet; with ``jobset``, ``lws`` or ``helm``
behind it, those. They are kept outside the project, in ``$DRACHMA_PEERS_CACHE`` or ``~/.cache/drachma/peers``, by a
hash of what they are made of. All but the first two take minutes the first time.
"""

import hashlib
import pathlib
import subprocess
import sys

from tests import gobuild
from tests.gobuild import MissingError

SOURCE = pathlib.Path(__file__).parent / "go"
_HELM = pathlib.Path(__file__).parents[1] / "cluster" / "go" / "helm"
"""Module that pins helm, for the tests on a real control plane too."""
CACHE = gobuild.cache_folder("peers", "DRACHMA_PEERS_CACHE")
NAMES = ("driver", "runtime", "kubelet")

_OTHERS = {"helm": "helm.sh/helm/v3/cmd/helm", "jobset": "sigs.k8s.io/jobset", "lws": "sigs.k8s.io/lws/cmd"}
"""Programs of other projects, built as they are, each in a module that pins what it is built from."""
_MODULES = {"lws": "sigs.k8s.io/lws"}
"""Modules of programs whose package is not at the root of its module."""

__all__ = ["CACHE", "NAMES", "SOURCE", "MissingError", "build", "built", "files_of"]


def build(name: str) -> pathlib.Path:
    """The program of a name, built where it is not there yet.

    Raises:
        MissingError: there is no Go, or its modules cannot be fetched.
        RuntimeError: it does not build, or not in time.
    """
    binary = _place(name)
    gobuild.build(name, _OTHERS.get(name, f"./{name}"), _module(name), binary)
    return binary


def built(name: str) -> pathlib.Path:
    """The program of a name, if it was built.

    Raises:
        MissingError: it was not.
    """
    binary = _place(name)
    if not binary.exists():
        raise MissingError(f"{name} is not built: python -m tests.peers.programs {name}")
    return binary


def files_of(name: str) -> pathlib.Path:
    """Where the files of another project's program are that was built, its manifests among them."""
    command = [gobuild.go_command(name), "list", "-m", "-f", "{{.Dir}}", _MODULES.get(name, _OTHERS[name])]
    done = subprocess.run(command, cwd=_module(name), capture_output=True, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def _place(name: str) -> pathlib.Path:
    """Where a program is kept."""
    module = _module(name)
    own = [] if name in _OTHERS else sorted((SOURCE / name).iterdir())
    key = hashlib.sha256(b"".join(part.read_bytes() for part in (module / "go.mod", module / "go.sum", *own)))
    return CACHE / f"{name}-{key.hexdigest()[:16]}"


def _module(name: str) -> pathlib.Path:
    if name == "helm":
        return _HELM
    return SOURCE / name if name in _OTHERS else SOURCE


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        try:
            build(name)
        except MissingError as missing:
            gobuild.report(f"left out: {missing}")


if __name__ == "__main__":
    main()
