"""Programs that drachma is tried with, built from Go modules: a driver on upstream's helper, a runtime, the kubelet,
the controller of JobSets, and helm.

``python -m tests.peers.programs`` builds those of this project and the kubelet; with ``jobset`` or ``helm`` behind it,
one of these two. They are kept outside the project, in ``$DRACHMA_PEERS_CACHE`` or ``~/.cache/drachma/peers``, by a
hash of what they are made of. All but the first two take minutes the first time.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).parent / "go"
CACHE = pathlib.Path(os.environ.get("DRACHMA_PEERS_CACHE") or "~/.cache/drachma/peers").expanduser()
NAMES = ("driver", "runtime", "kubelet")

_LONGEST_SECONDS = 2400.0
_REPORT_SECONDS = 30.0


_OTHERS = {"helm": "helm.sh/helm/v3/cmd/helm", "jobset": "sigs.k8s.io/jobset"}
"""Programs of other projects, built as they are, each in a module that pins what it is built from."""


class MissingError(Exception):
    """A program cannot be built on this machine; the text says what is missing."""


def build(name: str) -> pathlib.Path:
    """The program of a name, built where it is not there yet.

    Raises:
        MissingError: there is no Go, or its modules cannot be fetched.
        RuntimeError: it does not build, or not in time.
    """
    binary = _place(name)
    if binary.exists():
        return binary
    go, module = find_go(name), _module(name)
    package = _OTHERS.get(name, f"./{name}")
    CACHE.mkdir(parents=True, exist_ok=True)
    unfinished = CACHE / f".{name}-{os.getpid()}"
    problems = _run([go, "list", "-deps", package], module, title=f"fetching modules of {name}")
    if problems:
        raise MissingError(f"{name}: its modules cannot be fetched: {problems.strip().splitlines()[-1]}")
    build = [go, "build", "-o", str(unfinished), package]
    problems = _run(build, module, title=f"building {name} (once; the kubelet takes minutes)")
    if problems:
        raise RuntimeError(f"{name} does not build: {problems}")
    unfinished.replace(binary)
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
    command = [find_go(name), "list", "-m", "-f", "{{.Dir}}", _OTHERS[name]]
    done = subprocess.run(command, cwd=_module(name), capture_output=True, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def find_go(name: str) -> str:
    """Return the path of the Go command. Raises MissingError if there is none, on behalf of a program of a name."""
    go = shutil.which("go")
    if go is None:
        raise MissingError(f"{name}: Go is not installed")
    return go


def _place(name: str) -> pathlib.Path:
    """Where a program is kept."""
    module = _module(name)
    own = [] if name in _OTHERS else sorted((SOURCE / name).iterdir())
    key = hashlib.sha256(b"".join(part.read_bytes() for part in (module / "go.mod", module / "go.sum", *own)))
    return CACHE / f"{name}-{key.hexdigest()[:16]}"


def _module(name: str) -> pathlib.Path:
    return SOURCE / name if name in _OTHERS else SOURCE


def _run(command: list[str], module: pathlib.Path, *, title: str) -> str:
    """Runs a command in the folder of a module, and says now and then that it still runs; its errors where it fails."""
    begun = time.monotonic()
    _report(title)
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
                _report(f"{title}: for {seconds:.0f} s")
    _report(f"{title}: {time.monotonic() - begun:.0f} s")
    return "" if process.returncode == 0 else problems or f"exit code {process.returncode}"


def _report(text: str) -> None:
    # Past what pytest captures: whoever waits for minutes wants to see that something happens.
    print(f"peers: {text}", file=sys.__stderr__, flush=True)


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        try:
            build(name)
        except MissingError as missing:
            _report(f"left out: {missing}")


if __name__ == "__main__":
    main()
