"""The programs of a real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

``python -m tests.cluster.programs`` builds them from the Go module proxy, once, into ``$DRACHMA_CLUSTER_CACHE`` or
``~/.cache/drachma/cluster``, by a hash of the modules that each is made of. An older kube-apiserver is built too, for
version skew. The first build takes half an hour on one core. Prometheus is the installed one, or is unpacked from
Debian's package, see debianpackages.

``$KUBE_BINARIES`` names a folder with programs that exist already, under their own names; an older kube-apiserver is
``kube-apiserver-v1.34`` there. ``--check`` builds nothing and fails if a program is absent.

A test whose program is absent is skipped, or fails if ``$DRACHMA_CLUSTER_REQUIRED`` is set, as in ``make cluster``.
"""

import dataclasses
import hashlib
import os
import pathlib
import sys

import pytest

from tests import debianpackages, gobuild
from tests.gobuild import MissingError

__all__ = [
    "CONTROL_PLANE",
    "DEBIAN_PACKAGES",
    "OLD_API_SERVER",
    "PROGRAMS",
    "MissingError",
    "build",
    "built",
    "module_of",
    "require",
]

_SOURCE = pathlib.Path(__file__).parent / "go"
_CACHE = gobuild.cache_folder("cluster", "DRACHMA_CLUSTER_CACHE")
_READY = os.environ.get("KUBE_BINARIES")
OLD_API_SERVER = "kube-apiserver-v1.34"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Programs that every test needs that talks to a cluster."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Program:
    module: str
    package: str
    release: str = ""

    def flags(self) -> tuple[str, ...]:
        """Return the build flags; without them a program of Kubernetes says that it has no version."""
        if not self.release:
            return ("-ldflags=-s -w",)
        major, minor, _ = self.release.removeprefix("v").split(".")
        values = {"gitVersion": self.release, "gitMajor": major, "gitMinor": minor}
        packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        named = (f"-X {package}.{name}={value}" for package in packages for name, value in values.items())
        return ("-ldflags=-s -w " + " ".join(named),)


PROGRAMS = {
    "etcd": _Program("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": _Program("v1.37", "k8s.io/kubernetes/cmd/kube-apiserver", "v1.37.1"),
    "kube-controller-manager": _Program("v1.37", "k8s.io/kubernetes/cmd/kube-controller-manager", "v1.37.1"),
    "kube-scheduler": _Program("v1.37", "k8s.io/kubernetes/cmd/kube-scheduler", "v1.37.1"),
    "kueue": _Program("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    "helm": _Program("helm", "helm.sh/helm/v3/cmd/helm"),
    "kustomize": _Program("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
    OLD_API_SERVER: _Program("v1.34", "k8s.io/kubernetes/cmd/kube-apiserver", "v1.34.4"),
}
DEBIAN_PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus"}
"""Package of each program that Debian has."""


def build(name: str) -> pathlib.Path:
    """Return the program of a name, and build or fetch it if it is absent.

    Raises:
        MissingError: there is no Go, its modules cannot be fetched, or a package of Debian cannot.
        RuntimeError: it does not build, or not in time.
    """
    if name in DEBIAN_PACKAGES:
        return debianpackages.fetch(name, DEBIAN_PACKAGES[name])
    binary = _place(name)
    if not _READY:
        program = PROGRAMS[name]
        gobuild.build(name, program.package, _SOURCE / program.module, binary, program.flags())
    return binary


def built(name: str) -> pathlib.Path:
    """Return the program of a name.

    Raises:
        MissingError: it is not built, or not in $KUBE_BINARIES.
    """
    if name in DEBIAN_PACKAGES:
        return debianpackages.find(name, DEBIAN_PACKAGES[name])
    binary = _place(name)
    if not binary.exists():
        remedy = f"$KUBE_BINARIES has no {name}" if _READY else "run: python -m tests.cluster.programs"
        raise MissingError(f"{name} is absent: {remedy}")
    return binary


def _place(name: str) -> pathlib.Path:
    if _READY:
        return pathlib.Path(_READY) / name
    program = PROGRAMS[name]
    module = _SOURCE / program.module
    made_of = (module / "go.mod").read_bytes() + (module / "go.sum").read_bytes() + "".join(program.flags()).encode()
    return _CACHE / f"{name}-{hashlib.sha256(made_of).hexdigest()[:16]}"


def module_of(name: str) -> pathlib.Path:
    """Return the folder of the module that a program is built from."""
    return _SOURCE / PROGRAMS[name].module


def require(*names: str) -> None:
    """Skip the test if a program is absent, or fail it where programs are required."""
    try:
        for name in names:
            built(name)
    except MissingError as missing:
        if os.environ.get("DRACHMA_CLUSTER_REQUIRED"):
            pytest.fail(f"no control plane: {missing}")
        pytest.skip(f"no control plane: {missing}")


def main() -> None:
    names = [each for each in sys.argv[1:] if each != "--check"] or [*PROGRAMS, *DEBIAN_PACKAGES]
    make = built if "--check" in sys.argv else build
    problems = []
    for name in names:
        try:
            make(name)
        except MissingError as missing:
            problems.append(str(missing))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
