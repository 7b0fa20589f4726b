"""``drachma play``: when it takes its control plane to have come to rest."""

import asyncio
import time

import pytest

from drachma.api import pod
from drachma.cli import options, playground
from drachma.client import patches
from drachma.offline import manifestfiles
from drachma.process import embedded
from drachma.runtime import Informers
from drachma.store import memory
from drachma.testing import claim


async def test_a_process_that_stands_still_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_SILENT_SECONDS", 0.05)
    monkeypatch.setattr(playground, "_QUIET_SECONDS", 0.05)
    async with embedded.server(memory.MemoryStore()) as server, Informers(server.client) as informers:
        watched = playground._Watched(informers, has_workloads=False, runs_pods=False, has_queues=False, goal=None)
        await informers.wait_synced()

        async def seen_at_rest() -> bool:
            assert await watched.settle(60)
            return watched.claim("late", namespace="default") is not None

        resting = asyncio.create_task(seen_at_rest())
        for _ in range(10):
            # The machine has others to serve, and all of this process waits.
            time.sleep(0.02)
            await asyncio.sleep(0)
        await server.client.create(claim("late").request("gpu", device_class="gpu").build())
        assert await resting


async def test_a_pod_that_the_scheduler_tries_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_SILENT_SECONDS", 0.01)
    monkeypatch.setattr(playground, "_QUIET_SECONDS", 0.01)
    monkeypatch.setattr(playground, "_BACKOFF_SECONDS", 60.0)
    async with embedded.server(memory.MemoryStore()) as server, Informers(server.client) as informers:
        watched = playground._Watched(informers, has_workloads=False, runs_pods=False, has_queues=False, goal=None)
        await informers.wait_synced()
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await server.client.create_document(pod.Pod, document)
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "conflict"}
        patch = patches.merge({"status": {"conditions": [condition]}})
        await server.client.patch(pod.Pod, "p", namespace="default", subresource="status", patch=patch)
        while not any(each.status.conditions for each in watched.pods):
            await asyncio.sleep(0)
        assert not await watched.settle(0.3), "the scheduler tries it again after its backoff"
        await server.client.bind(await server.client.get(pod.Pod, "p", namespace="default"), node="n")
        assert await watched.settle(60)


async def test_a_failed_pod_ends_the_wait_for_complete_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_SILENT_SECONDS", 0.01)
    monkeypatch.setattr(playground, "_QUIET_SECONDS", 0.01)
    goal = options.PlayGoal.COMPLETE
    async with embedded.server(memory.MemoryStore()) as server, Informers(server.client) as informers:
        watched = playground._Watched(informers, has_workloads=False, runs_pods=True, has_queues=False, goal=goal)
        await informers.wait_synced()
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
        }
        await server.client.create_document(pod.Pod, document)
        await server.client.bind(await server.client.get(pod.Pod, "p", namespace="default"), node="n")
        terminated = {"exitCode": 3, "containerID": "x://c"}
        container = {"name": "c", "image": "i", "imageID": "", "state": {"terminated": terminated}}
        status = {"phase": "Failed", "containerStatuses": [{**container, "ready": False, "restartCount": 0}]}
        patch = patches.merge({"status": status})
        await server.client.patch(pod.Pod, "p", namespace="default", subresource="status", patch=patch)
        assert await watched.settle(60)
        assert next(iter(playground._lines(watched, {}, {}))) == "pod default/p: on node n, failed: c: exit code 3"


async def test_a_node_made_by_hand_declares_the_features_of_an_agent() -> None:
    def declared(**status: object) -> object:
        content = {"kind": "Node", "metadata": {"name": "n"}, **({"status": status} if status else {})}
        source = playground._declare_features(manifestfiles.Source("f", content), ["A"])
        return source.content["status"]["declaredFeatures"]

    assert declared() == ["A"]
    assert declared(capacity={"cpu": "1"}) == ["A"]
    assert declared(declaredFeatures=[]) == []
