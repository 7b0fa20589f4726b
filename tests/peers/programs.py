"""Programs that drachma is tried with, built from Go modules: a driver on upstream's helper, a program that publishes
with upstream's controller, a runtime, a program that answers with the library of the Container Device Interface (CDI),
the kubelet, the controllers of JobSets, LeaderWorkerSets and Ray, and helm.

``python -m tests.peers.programs`` builds all of them; names as arguments build only those. The programs are kept
outside the project, in ``$DRACHMA_PEERS_CACHE`` or ``~/.cache/drachma/peers``, by a hash of their sources. All but
the first four take minutes the first time.
"""

import hashlib
import pathlib
import subprocess
import sys
from typing import NamedTuple

from tests import gobuild
from tests.gobuild import MissingError

SOURCE = pathlib.Path(__file__).parent / "go"
_HELM = pathlib.Path(__file__).parents[1] / "cluster" / "go" / "helm"
"""Module that pins helm, for the tests on a real control plane too."""
CACHE = gobuild.cache_folder("peers", "DRACHMA_PEERS_CACHE")
NAMES = ("driver", "publish", "runtime", "cdi", "kubelet", "jobset", "lws", "kuberay", "helm")


_OWN_MODULES = frozenset({"cdi"})
"""Programs of ours that are modules of their own, because they need little."""


class _Origin(NamedTuple):
    """Source of another project's program: our module that pins its dependencies, its own module, and its package."""

    pins: str
    module: str
    package: str = ""

    @property
    def import_path(self) -> str:
        return f"{self.module}/{self.package}" if self.package else self.module


_OTHERS = {
    "helm": _Origin("helm", "helm.sh/helm/v3", "cmd/helm"),
    "jobset": _Origin("controllers", "sigs.k8s.io/jobset"),
    "kuberay": _Origin("controllers", "github.com/ray-project/kuberay/ray-operator"),
    "lws": _Origin("controllers", "sigs.k8s.io/lws", "cmd"),
}
"""Programs of other projects, built as they are. The controllers share pins, so that libraries are compiled once."""

__all__ = ["CACHE", "NAMES", "SOURCE", "MissingError", "build", "built", "files_of"]


def build(name: str) -> pathlib.Path:
    """The program of a name, built where it is not there yet.

    Raises:
        MissingError: there is no Go, or its modules cannot be fetched.
        RuntimeError: it does not build, or not in time.
    """
    binary = _place(name)
    origin = _OTHERS.get(name)
    package = "." if name in _OWN_MODULES else f"./{name}"
    gobuild.build(name, origin.import_path if origin is not None else package, _module(name), binary)
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
    command = [gobuild.go_command(name), "list", "-m", "-f", "{{.Dir}}", _OTHERS[name].module]
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
    if name in _OWN_MODULES:
        return SOURCE / name
    return SOURCE / _OTHERS[name].pins if name in _OTHERS else SOURCE


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        try:
            build(name)
        except MissingError as missing:
            gobuild.report(f"left out: {missing}")


if __name__ == "__main__":
    main()
