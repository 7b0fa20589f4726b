"""Queues that take turns by past usage, whatever happens to them: the heaps say what a sort of all who wait says."""

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from drachma.queueing.admission.pendingqueue import RequeueReason, UsageQueue
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, workload
from drachma.queueing.workloads.pastusage import UsageRates
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LOCAL_QUEUES = [(place, name) for place in ("one", "two") for name in ("red", "green", "blue")]


def _local_queue(key: LocalQueueKey, weight: int) -> localqueue.LocalQueue:
    document = {
        "metadata": {"name": key[1], "namespace": key[0]},
        "spec": {"clusterQueue": "team", "fairSharing": {"weight": str(weight)}},
    }
    return decoding.decode(document, localqueue.LocalQueue)


class _World:
    """A queue, its ledger, and beside them a list of who waits and may be tried."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.ledger = UsageLedger(UsageRates(half_life=60, interval=10))
        self.weigh()
        strategy = chance.choice(["StrictFIFO", "BestEffortFIFO"])
        document = {"metadata": {"name": "team"}, "spec": {"queueingStrategy": strategy}}
        self.queue = UsageQueue(decoding.decode(document, clusterqueue.ClusterQueue), ledger=self.ledger)
        self.waiting: dict[str, WorkloadInfo] = {}
        self._sticky = ""
        self._seconds = 0

    def order(self, info: WorkloadInfo) -> tuple[object, ...]:
        usage = self.ledger.usage((info.workload.metadata.namespace, info.workload.spec.queue_name))
        return usage, info.key != self._sticky, info.order

    def weigh(self) -> None:
        self.ledger.set_local_queues([_local_queue(each, self._chance.randrange(3)) for each in _LOCAL_QUEUES])

    def sample(self) -> None:
        self._seconds += self._chance.randrange(60)
        used = {"cpu": self._chance.randrange(4) * 10**9}
        self.ledger.sample(self._chance.choice(_LOCAL_QUEUES), used, datetime.fromtimestamp(self._seconds, UTC))

    def put(self) -> None:
        place, local = self._chance.choice(_LOCAL_QUEUES)
        name = f"w{self._chance.randrange(12)}"
        document = {
            "metadata": {"name": name, "namespace": place, "uid": f"{place}-{name}"},
            "spec": {"queueName": local, "priority": self._chance.randrange(3)},
        }
        info = WorkloadInfo(decoding.decode(document, workload.Workload), (), "team")
        self.queue.put(info, _NOW)
        self.waiting[info.key] = info

    def delete(self) -> None:
        if self.waiting:
            key = self._chance.choice(sorted(self.waiting))
            del self.waiting[key]
            self.queue.delete(key)
            self._sticky = "" if self._sticky == key else self._sticky

    def pop(self) -> None:
        want = min(self.waiting.values(), key=self.order, default=None)
        info = self.queue.pop()
        assert (info and info.key) == (want and want.key)
        if info is None:
            return
        if self._chance.random() < 0.5:
            self.queue.requeue(info, RequeueReason.PENDING_PREEMPTION, _NOW)
            self._sticky = "" if self.queue.is_strict else info.key
        else:
            self.queue.delete(info.key)
            del self.waiting[info.key]
            self._sticky = "" if self._sticky == info.key else self._sticky


@pytest.mark.parametrize("seed", range(40))
def test_whoever_is_popped_is_first_in_a_sort_of_all(seed: int) -> None:
    chance = random.Random(seed)
    world = _World(chance)
    steps: list[Callable[[], None]] = [world.put, world.put, world.put, world.pop, world.delete, world.sample]
    for number in range(200):
        chance.choice(steps)()
        if number % 50 == 0:
            world.weigh()
        want = [each.key for each in sorted(world.waiting.values(), key=world.order)]
        assert list(world.queue.active) == [each.key for each in world.queue.waiting()] == want
