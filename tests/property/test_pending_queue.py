"""A pending queue against the plainest one: two dictionaries, and a sort whenever somebody asks."""

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from drachma.queueing.admission.pendingqueue import PendingQueue, RequeueReason
from drachma.queueing.kinds import clusterqueue, decoding, workload
from drachma.queueing.workloads.requests import PodSetRequests
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NAMESPACES = ("red", "blue")


class _PlainQueue:
    """Who does not fit is parked with all of its shape; whoever comes then is parked too, until a retry."""

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.active: dict[str, WorkloadInfo] = {}
        self.parked: dict[str, WorkloadInfo] = {}
        self._hopeless: set[bytes] = set()

    def put(self, info: WorkloadInfo) -> None:
        before = self.parked.get(info.key)
        if before is not None and before.shape == info.shape:
            self.parked[info.key] = info
            return
        self.parked.pop(info.key, None)
        if info.key not in self.active and not self._is_strict and info.shape in self._hopeless:
            self.parked[info.key] = info
        else:
            self.active[info.key] = info

    def pop(self) -> WorkloadInfo | None:
        info = min(self.active.values(), key=lambda each: each.order, default=None)
        return self.active.pop(info.key) if info is not None else None

    def come_back(self, info: WorkloadInfo, *, fits_later: bool) -> None:
        if fits_later or self._is_strict:
            self.active[info.key] = info
            return
        self.parked[info.key] = info
        self._hopeless.add(info.shape)
        for each in [each for each in self.active.values() if each.shape == info.shape]:
            self.parked[each.key] = self.active.pop(each.key)

    def retry(self, namespaces: set[str]) -> int:
        self._hopeless.clear()
        again = [each for each in self.parked.values() if each.workload.metadata.namespace in namespaces]
        for each in again:
            self.active[each.key] = self.parked.pop(each.key)
        return len(again)

    def delete(self, key: str) -> None:
        self.active.pop(key, None)
        self.parked.pop(key, None)


class _Both:
    """Does the same to both, and compares."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        strategy = chance.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"])
        document = {"metadata": {"name": "team"}, "spec": {"queueingStrategy": strategy}}
        self.queue = PendingQueue(decoding.decode(document, clusterqueue.ClusterQueue))
        self.plain = _PlainQueue(is_strict=self.queue.is_strict)

    def put(self) -> None:
        namespace, name = self._chance.choice(_NAMESPACES), f"w{self._chance.randrange(15)}"
        cpu = self._chance.randrange(3)
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
        pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        document = {
            "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
            "spec": {"queueName": "jobs", "priority": self._chance.randrange(2), "podSets": [pod_set]},
        }
        asked = PodSetRequests("main", {"cpu": cpu}, 1)
        info = WorkloadInfo(decoding.decode(document, workload.Workload), (asked,), "team")
        self.queue.put(info, _NOW)
        self.plain.put(info)

    def pop(self) -> None:
        info, want = self.queue.pop(), self.plain.pop()
        assert (info and info.key) == (want and want.key)
        if info is None:
            return
        if self._chance.random() < 0.3:
            self.queue.delete(info.key)
            return
        fits_later = self._chance.random() < 0.3
        reason = RequeueReason.FAILED_AFTER_NOMINATION if fits_later else RequeueReason.NO_FIT
        assert self.queue.requeue(info, reason, _NOW)
        self.plain.come_back(info, fits_later=fits_later)

    def retry(self) -> None:
        namespaces = set(self._chance.sample(_NAMESPACES, self._chance.randrange(3)))
        assert self.queue.retry(_NOW, takes=namespaces.__contains__) == self.plain.retry(namespaces)

    def delete(self) -> None:
        key = f"{self._chance.choice(_NAMESPACES)}/w{self._chance.randrange(15)}"
        self.queue.delete(key)
        self.plain.delete(key)

    def compare(self) -> None:
        active = sorted(self.plain.active.values(), key=lambda each: each.order)
        assert self.queue.active == tuple(each.key for each in active)
        assert self.queue.parked == tuple(sorted(self.plain.parked))
        everybody = {**self.plain.active, **self.plain.parked}
        assert len(self.queue) == len(everybody)
        assert [each.key for each in self.queue.waiting()] == sorted(everybody, key=lambda key: everybody[key].order)
        for key, info in everybody.items():
            assert self.queue.get(key) is info


@pytest.mark.parametrize("seed", range(60))
def test_a_queue_with_heaps_by_shape_does_as_one_that_looks_at_everybody(seed: int) -> None:
    chance = random.Random(seed)
    both = _Both(chance)
    steps: list[Callable[[], None]] = [both.put, both.put, both.put, both.pop, both.pop, both.retry, both.delete]
    for _ in range(300):
        chance.choice(steps)()
        both.compare()
