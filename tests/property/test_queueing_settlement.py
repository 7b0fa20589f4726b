"""Random lives of workloads whose devices are charged before they are known: no quota is exceeded, none is lost.

The world is small and pure: an admitter, workloads as an API server would store them, and pods that are only what their
devices count for. After every step a second admitter is made of what is stored, as after a crash.
"""

import random
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from drachma.queueing import admissibility, devicerequests, settlement, transitions
from drachma.queueing.admitter import Admitter
from drachma.queueing.configuration import DeviceClassMapping
from drachma.queueing.devicemappings import DeviceMappings
from drachma.queueing.gates import DEFAULT
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.queueingpolicy import FirstAvailable, NamedClaims, QueueingPolicy
from drachma.queueing.requests import counts_after_reclaim
from drachma.queueing.settlement import PodUse
from tests.unit.queueing import devicecases

_POLICY = QueueingPolicy(first_available=FirstAvailable.ENVELOPE, named_claims=NamedClaims.SHARED)
_MAPPINGS = DeviceMappings.of(
    [
        DeviceClassMapping(name="fast", device_class_names=("large",)),
        DeviceClassMapping(name="slow", device_class_names=("small",)),
    ]
)
_ALTERNATIVES = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "large"},
        {"name": "small", "deviceClassName": "small", "count": 2},
    ],
}
_WAYS: tuple[dict[str, int], ...] = ({"fast": 1}, {"slow": 2})
_OBJECTS = devicecases.objects(
    devicecases.template("either", _ALTERNATIVES), devicecases.device_class("large"), devicecases.device_class("small")
)
_NOMINAL = {"fast": 4, "slow": 6}
_BORROWING = {"fast": 2, "slow": 2}
_QUEUES = ("one", "other")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class _Claims:
    """One claim that jobs may share: of one large device."""

    def get(self, namespace: str, name: str) -> object:
        return devicecases.claim(name, {"name": "gpu", "exactly": {"deviceClassName": "large"}})


def _admitter() -> Admitter:
    made = Admitter()
    made.set_places({"default": admissibility.Place()})
    return made


def _queue(name: str) -> clusterqueue.ClusterQueue:
    quotas = [
        {"name": each, "nominalQuota": str(amount), "borrowingLimit": str(_BORROWING[each])}
        for each, amount in _NOMINAL.items()
    ]
    group = {"coveredResources": list(_NOMINAL), "flavors": [{"name": "default", "resources": quotas}]}
    spec = {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [group]}
    return decoding.decode({"metadata": {"name": name}, "spec": spec}, clusterqueue.ClusterQueue)


class _World:
    def __init__(self) -> None:
        self.now = _BEGIN
        self.stored: dict[str, workload.Workload] = {}
        self.pods: dict[str, list[dict[str, int] | None]] = {}
        """What the devices of each live pod count for; None while they are not allocated."""
        self.replaced: set[str] = set()
        """Workloads of which a pod failed since they were admitted."""
        self.made = 0
        self.admitter = self.restarted()

    def restarted(self) -> Admitter:
        """An admitter that knows what is stored, and nothing else."""
        made = _admitter()
        made.set_queues(
            [_queue(name) for name in _QUEUES],
            local_queues=[
                decoding.decode(
                    {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}},
                    localqueue.LocalQueue,
                )
                for name in _QUEUES
            ],
            flavors=[decoding.decode({"metadata": {"name": "default"}}, resourceflavor.ResourceFlavor)],
            holders=[each for each in self.stored.values() if each.status.admission is not None],
        )
        for each in self.stored.values():
            if each.status.admission is None:
                self._enqueue(made, each)
        return made

    def _enqueue(self, into: Admitter, of: workload.Workload) -> None:
        devices = devicerequests.count(of, _OBJECTS, _MAPPINGS, gates=DEFAULT, policy=_POLICY, claims=_Claims())  # type: ignore[arg-type]
        assert isinstance(devices, devicerequests.DeviceRequests)
        into.enqueue(of, self.now, devices=devices)

    # What happens

    def submit(self, queue: str, count: int, *, is_sharing: bool) -> None:
        self.made += 1
        name = f"job-{self.made}"
        of = devicecases.job("either", named=["shared"] if is_sharing else [], count=count, name=name, queue=queue)
        self._store(of)
        self._enqueue(self.admitter, self.stored[f"default/{name}"])

    def cycle(self) -> None:
        self.now += timedelta(seconds=1)
        report = self.admitter.run_cycle(self.now)
        for key, after in (report.workloads if report is not None else {}).items():
            self._store(after)
            if after.status.admission is not None:
                self.pods[key] = [None] * after.spec.pod_sets[0].count
                self.replaced.discard(key)
                self.admitter.hold(self.stored[key])

    def allocate(self, key: str, way: int) -> None:
        """The first pod without devices gets some."""
        pods = self.pods[key]
        if None in pods:
            pods[pods.index(None)] = _WAYS[way]
            self._settle(key)

    def replace(self, key: str) -> None:
        """A pod fails, and another comes in its place."""
        if self.pods[key]:
            self.pods[key] = [*self.pods[key][1:], None]
            self.replaced.add(key)
            self._settle(key)

    def succeed(self, key: str) -> None:
        """A pod is over, and none comes in its place."""
        of = self.stored[key]
        if len(self.pods[key]) < 2:
            return
        self.pods[key].pop(0)
        count = sum(each.count for each in of.status.reclaimable_pods) + 1
        reclaimable = (workload.ReclaimablePod(name="main", count=count),)
        self._store(structs.replace(of, status=structs.replace(of.status, reclaimable_pods=reclaimable)))
        self.admitter.hold(self.stored[key])
        self._settle(key)

    def end(self, key: str) -> None:
        del self.stored[key], self.pods[key]
        queue = self.admitter.snapshot.holders[key].cluster_queue
        self.admitter.release(key)
        self.admitter.retry([queue], self.now)

    def _settle(self, key: str) -> None:
        before = self.stored[key]
        after = settlement.settle(before, [PodUse("main", each) for each in self.pods[key]], gates=DEFAULT)
        if isinstance(after, settlement.Overdrawn):
            assert key in self.replaced
            self.end(key)
            evicted = transitions.unreserve(before, reason="Pending", message=after.message, now=self.now)
            status = structs.replace(evicted.status, reclaimable_pods=())
            self._store(structs.replace(evicted, status=status))
            self._enqueue(self.admitter, self.stored[key])
        elif after is not before:
            assert _is_lower(after, before)
            self._store(after)
            self.admitter.hold(self.stored[key])

    def _store(self, of: workload.Workload) -> None:
        key = f"{of.metadata.namespace}/{of.metadata.name}"
        before = self.stored.get(key)
        version = int(before.metadata.resource_version or 0) + 1 if before is not None else 1
        metadata = structs.replace(of.metadata, resource_version=str(version))
        self.stored[key] = structs.replace(of, metadata=metadata)

    # What must hold

    def allocated(self, queue: str) -> dict[str, int]:
        """What devices that exist count for in a queue: those of pods, and a shared claim once."""
        total = dict.fromkeys(_NOMINAL, 0)
        for key, pods in self.pods.items():
            if self.stored[key].spec.queue_name == queue:
                for charges in pods:
                    for name, amount in (charges or {}).items():
                        total[name] += amount
        if any(_shares(self.stored[key]) for key in self.pods if self.stored[key].spec.queue_name == queue):
            total["fast"] += 1
        return total


def _shares(of: workload.Workload) -> bool:
    return any(claim.resource_claim_name for claim in of.spec.pod_sets[0].template.spec.resource_claims)


def _is_lower(after: workload.Workload, before: workload.Workload) -> bool:
    assert after.status.admission is not None
    assert before.status.admission is not None
    (new,), (old,) = after.status.admission.pod_set_assignments, before.status.admission.pod_set_assignments
    return all(new.resource_usage[name] <= amount for name, amount in old.resource_usage.items())


def _usage(admitter: Admitter) -> dict[str, dict[str, int]]:
    queues = admitter.snapshot.tree.queues
    return {
        name: {
            resource: sum(amount for key, amount in queues[name].usage.items() if key.resource == resource)
            for resource in _NOMINAL
        }
        for name in _QUEUES
    }


_NAMES = [*["submit", "cycle"] * 4, *["allocate"] * 5, *["replace"] * 2, "succeed", "end", "restart"]


def _take(world: _World, name: str, whom: int, how: int) -> None:
    if name == "submit":
        world.submit(_QUEUES[whom % 2], 1 + how % 2, is_sharing=how < 6)
    elif name == "cycle":
        world.cycle()
    elif name == "restart":
        world.admitter = world.restarted()
    elif world.pods:
        key = sorted(world.pods)[whom % len(world.pods)]
        match name:
            case "allocate":
                world.allocate(key, how % 2)
            case "replace":
                world.replace(key)
            case "succeed":
                world.succeed(key)
            case "end":
                world.end(key)


@pytest.mark.parametrize("seed", range(12))
def test_quota_holds_at_any_moment_and_is_settled_in_the_end(seed: int) -> None:
    # Histories are long, and few of what a shrinking generator likes to draw lead anywhere.
    chance = random.Random(seed)
    world = _World()
    for _ in range(60):
        _take(world, chance.choice(_NAMES), chance.randrange(10), chance.randrange(10))
        usage = _usage(world.admitter)
        for queue, of_queue in usage.items():
            allocated = world.allocated(queue)
            for name, amount in of_queue.items():
                assert allocated[name] <= amount <= _NOMINAL[name] + _BORROWING[name], (queue, name)
        for name, amount in _NOMINAL.items():
            assert sum(of_queue[name] for of_queue in usage.values()) <= amount * len(_QUEUES)
        assert _usage(world.restarted()) == usage

    for key in sorted(world.pods):
        while key in world.pods and None in world.pods[key]:
            world.allocate(key, 0)
    usage = _usage(world.admitter)
    assert usage == {queue: world.allocated(queue) for queue in _QUEUES}
    counts = {key: counts_after_reclaim(world.stored[key])["main"] for key in world.pods}
    assert counts == {key: len(pods) for key, pods in world.pods.items()}
