"""A client-go program against a running server, where Go is installed: typed clients in protobuf, shared informers."""

import hashlib
import os
import pathlib
import subprocess

import pytest

from tests import gobuild
from tests.scenarios import processes

SOURCE = pathlib.Path(__file__).parent / "clientgo"
CACHE = gobuild.cache_folder("clientgo", "DRACHMA_CLIENTGO_CACHE")


@pytest.fixture(scope="session")
def informer() -> pathlib.Path:
    """The program, built once for every version of its source; the first time takes minutes."""
    content = b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()))
    binary = CACHE / f"informer-{hashlib.sha256(content).hexdigest()[:16]}"
    try:
        gobuild.build("the client-go program", ".", SOURCE, binary)
    except gobuild.MissingError as error:
        pytest.skip(str(error))
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
