"""Arguments that create a container with podman."""

import pathlib
import shutil

import pytest

from drachma.node.logs import filelog
from drachma.node.runtimes import podman, protocol
from drachma.testing import manualclock
from tests.unit.node.runtimes import test_process


def test_containers_use_the_network_of_the_machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    runtime = podman.PodmanRuntime(tmp_path, clock=manualclock.ManualClock())
    work = protocol.Work(
        pod=test_process.POD,
        container=test_process.CONTAINER,
        attempt=0,
        devices=(),
        setup=protocol.Setup(command=("sh",)),
    )
    words = runtime._creation("c", work, "")
    assert words[words.index("--network") + 1] == "host"
    assert f"max-size={filelog.FILE_BYTES}" in words
    assert "--stop-signal" not in words
