"""A client-go program against a running server, where Go is installed: typed clients in protobuf, shared informers."""

import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest

from tests.scenarios import processes

SOURCE = pathlib.Path(__file__).parent / "clientgo"
CACHE = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "clientgo"
OFFLINE = ("dial tcp", "no such host", "module lookup disabled", "connection refused")


@pytest.fixture(scope="session")
def informer() -> pathlib.Path:
    """The program, built once for every version of its source; the first time takes minutes."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed, so there is no client-go program to run")
    content = b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()))
    binary = CACHE / f"informer-{hashlib.sha256(content).hexdigest()[:16]}"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = CACHE / f".informer-{os.getpid()}"
        built = subprocess.run(
            [go, "build", "-o", str(unfinished), "."], cwd=SOURCE, capture_output=True, text=True, check=False
        )
        if built.returncode != 0 and any(sign in built.stderr for sign in OFFLINE):
            pytest.skip(f"client-go cannot be fetched: {built.stderr.strip().splitlines()[-1]}")
        assert built.returncode == 0, built.stderr
        unfinished.replace(binary)
    return binary


def test_informers_see_everything(informer: pathlib.Path, server: processes.Process) -> None:
    outcome = subprocess.run(
        [str(informer)],
        env={"PATH": os.environ["PATH"], "KUBECONFIG": str(server.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.splitlines() == [
        "slice added go-slice",
        "claim added go-claim",
        "claim updated go-claim",
        "claim updated go-claim",
        "pod added go-pod",
        "pod updated go-pod",
        "pod updated go-pod",
        "pod updated go-pod",
        "pod deleted go-pod",
        "claim deleted go-claim",
        "slice deleted go-slice",
    ]
