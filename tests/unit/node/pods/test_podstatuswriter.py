"""The writer of a pod's status: which versions of the pod contradict it."""

from typing import Any

import pytest
from msgspec import structs

from drachma.api.pod import Pod, PodCondition
from drachma.node.pods.podstatuswriter import PodStatusWriter
from tests.unit.node.pods.fakes import make_pod


def _version(pod: Pod, number: int, ready: str) -> Pod:
    """Return a later version of a pod with a Ready condition."""
    metadata = structs.replace(pod.metadata, resource_version=str(number))
    status = structs.replace(pod.status, conditions=(PodCondition(type="Ready", status=ready),))
    return structs.replace(pod, metadata=metadata, status=status)


class _Api:
    """Pods at the API server. The watch brings versions before the answer of the write that made them."""

    def __init__(self, on_stored: Any) -> None:
        self.on_stored = on_stored
        self.version = 10

    async def write_status(self, pod: Pod, content: dict[str, Any]) -> Pod:
        self.version += 1
        stored = _version(pod, self.version, content["conditions"][0]["status"])
        self.on_stored(stored)
        return stored

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


@pytest.mark.parametrize(
    ("seen_version", "seen_status", "want"),
    [
        pytest.param(0, "True", False, id="own-write-before-its-answer"),
        pytest.param(1, "False", True, id="another-writer-before-the-answer"),
    ],
)
async def test_versions_that_arrive_during_a_write(*, seen_version: int, seen_status: str, want: bool) -> None:
    verdicts: list[bool] = []

    def on_stored(stored: Pod) -> None:
        version = int(stored.metadata.resource_version) + seen_version
        verdicts.append(writer.is_contradicted(_version(stored, version, seen_status)))

    writer = PodStatusWriter(_Api(on_stored))
    assert await writer.write(make_pod(), {"conditions": [{"type": "Ready", "status": "True"}]})
    assert verdicts == [want]
