"""Random lives of workloads whose devices are charged before they are known: no quota is exceeded, none is lost.

The world is small and pure: an admitter, workloads as an API server would store them, and pods with claims that are
allocated one way or another; what each device counts for is written down here by hand. There is one world for each
setting beyond Kueue, and one for all of them. After every step a second admitter is made of what is stored, as after a
crash.
"""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from drachma.api import codec, meta, pod, resourceclaim
from drachma.api.devices import CELDeviceSelector, DeviceSelector
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.configuration.configuration import DeviceClassMapping
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.configuration.queueingpolicy import (
    AllDevices,
    FirstAvailable,
    NamedClaims,
    NodeAllocatable,
    QueueingPolicy,
    SelectedDevices,
    Sidecars,
    Templates,
)
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices import objects as deviceobjects
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.measure import Measure
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility, settlement, transitions
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL
from drachma.queueing.workloads.requests import counts_after_reclaim
from drachma.queueing.workloads.settlement import PodUse
from tests.unit.queueing.devices import devicecases

_MAPPINGS = DeviceMappings.of(
    [
        DeviceClassMapping(name="fast", device_class_names=("large",)),
        DeviceClassMapping(name="slow", device_class_names=("small",)),
        DeviceClassMapping(name="ext", device_class_names=("extended",)),
    ]
)
_EXTENDED = "example.com/extended"
_SELECTOR = 'device.attributes["gpus.example.com"].picked'
_DEVICES = {
    "large-0": ("a", "fast", 2),
    "large-1": ("a", "fast", 4),
    "small-0": ("a", "slow", 1),
    "small-1": ("a", "slow", 1),
    "small-2": ("a", "slow", 1),
    "small-3": ("b", "slow", 1),
}
"""Of each device its node, what it counts for, and how many cpus it stands for."""

_PICKED = ("large-1", "small-0", "small-3")
"""Devices that the expression of a quota selects."""
_SELECTED = (
    SelectedDevices(
        name="picked",
        device_class_names=("large", "small"),
        device_selector=DeviceSelector(cel=CELDeviceSelector(expression=_SELECTOR)),
    ),
)
_NOMINAL = {"fast": 5, "slow": 8, "cpu": 20_000, "ext": 8, "picked": 4}
_BORROWING = {"fast": 2, "slow": 2, "cpu": 8_000, "ext": 4, "picked": 1}
_QUEUES = ("one", "other")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class _Edition(NamedTuple):
    """A template that pods' claims are made from, and the devices that they may get by it, request by request."""

    request: Mapping[str, Any]
    ways: tuple[Mapping[str, tuple[str, ...]], ...]


def _exactly(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": fields}


def _either(*ways: tuple[str, int]) -> dict[str, Any]:
    chosen = [{"name": name, "deviceClassName": name, "count": count} for name, count in ways]
    return {"name": "gpu", "firstAvailable": chosen}


_EITHER = _Edition(
    _either(("large", 1), ("small", 2)), ({"gpu/large": ("large-1",)}, {"gpu/small": ("small-0", "small-1")})
)
_ONE = _Edition(_exactly(deviceClassName="large"), ({"gpu": ("large-0",)}, {"gpu": ("large-1",)}))
_TWO = _Edition(_exactly(deviceClassName="large", count=2), ({"gpu": ("large-0", "large-1")},))
_EVERY = _Edition(
    _exactly(deviceClassName="small", allocationMode="All"),
    ({"gpu": ("small-0", "small-1", "small-2")}, {"gpu": ("small-3",)}),
)
_LESS = _Edition(_either(("small", 2), ("small", 1)), ({"gpu/small": ("small-2", "small-3")},))
_MORE = _Edition(_either(("small", 3), ("large", 1)), ({"gpu/small": ("small-0", "small-1", "small-2")},))


class _Setting(NamedTuple):
    """A policy, and templates: the first there is, and others that take its place."""

    policy: QueueingPolicy
    editions: tuple[_Edition, ...]
    has_groups: bool = False
    """True if jobs share the claim of a PodGroup, and not a claim by name."""

    @property
    def has_sidecars(self) -> bool:
        return self.policy.sidecars is Sidecars.CHARGED

    @property
    def shares_claims(self) -> bool:
        return self.policy.named_claims is NamedClaims.SHARED

    @property
    def charges_nodes(self) -> bool:
        return self.policy.node_allocatable is NodeAllocatable.CHARGED

    def charges(self, devices: tuple[str, ...]) -> dict[str, int]:
        """What devices count for."""
        total = dict.fromkeys(_NOMINAL, 0)
        for each in devices:
            _, resource, cpus = _DEVICES[each]
            total[resource] += 1
            total["cpu"] += 1000 * cpus if self.charges_nodes else 0
            total["picked"] += each in _PICKED and bool(self.policy.selected_devices)
        return total


_SETTINGS = {
    "envelope": _Setting(QueueingPolicy(first_available=FirstAvailable.ENVELOPE), (_EITHER,)),
    "named-claims": _Setting(
        QueueingPolicy(first_available=FirstAvailable.ENVELOPE, named_claims=NamedClaims.SHARED), (_EITHER,)
    ),
    "group-claims": _Setting(QueueingPolicy(first_available=FirstAvailable.ENVELOPE), (_EITHER,), has_groups=True),
    "all-devices": _Setting(QueueingPolicy(all_devices=AllDevices.WORST_CASE), (_EVERY,)),
    "node-allocatable": _Setting(QueueingPolicy(node_allocatable=NodeAllocatable.CHARGED), (_ONE,)),
    "pinned": _Setting(QueueingPolicy(templates=Templates.PINNED), (_ONE, _ONE, _TWO)),
    "sidecars": _Setting(QueueingPolicy(sidecars=Sidecars.CHARGED), (_ONE,)),
    "selected-devices": _Setting(QueueingPolicy(selected_devices=_SELECTED), (_ONE,)),
    "selected-among-alternatives": _Setting(
        QueueingPolicy(first_available=FirstAvailable.ENVELOPE, selected_devices=_SELECTED), (_EITHER,)
    ),
    "selected-among-all": _Setting(
        QueueingPolicy(all_devices=AllDevices.WORST_CASE, selected_devices=_SELECTED), (_EVERY,)
    ),
    "everything": _Setting(
        QueueingPolicy(
            selected_devices=_SELECTED,
            first_available=FirstAvailable.ENVELOPE,
            all_devices=AllDevices.WORST_CASE,
            named_claims=NamedClaims.SHARED,
            node_allocatable=NodeAllocatable.CHARGED,
            templates=Templates.PINNED,
            sidecars=Sidecars.CHARGED,
        ),
        (_EITHER, _LESS, _EVERY, _MORE),
    ),
}


class _Claims:
    """Claims of pods, and one that jobs may share: of one large device."""

    def __init__(self, *claims: resourceclaim.ResourceClaim) -> None:
        self._claims = {each.metadata.name: each for each in claims}

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None:
        if name == "shared":
            shared = devicecases.claim(name, _exactly(deviceClassName="large"))
            assert isinstance(shared, resourceclaim.ResourceClaim)
            return shared
        return self._claims.get(name)


def _group() -> meta.Object:
    """Return the group whose pods share the claim ``shared``."""
    spec = {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "shared"}],
    }
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    return codec.decode(
        {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    )


def _allocated_claim(claim: meta.Object, results: list[dict[str, str]]) -> resourceclaim.ResourceClaim:
    allocated = codec.decode({**codec.encode(claim), "status": {"allocation": {"devices": {"results": results}}}})
    assert isinstance(allocated, resourceclaim.ResourceClaim)
    return allocated


def _in_group(of: workload.Workload) -> workload.Workload:
    """Return a workload whose pods name the group."""
    (pod_set,) = of.spec.pod_sets
    group = pod.PodSchedulingGroup(pod_group_name="g")
    template = structs.replace(pod_set.template, spec=structs.replace(pod_set.template.spec, scheduling_group=group))
    return structs.replace(of, spec=structs.replace(of.spec, pod_sets=(structs.replace(pod_set, template=template),)))


def _objects(edition: _Edition, uid: str, *, has_groups: bool) -> deviceobjects.DeviceObjects:
    def devices(node: str) -> list[dict[str, Any]]:
        return [
            devicecases.device(
                name,
                attributes={"model": {"string": name.partition("-")[0]}, "picked": {"bool": name in _PICKED}},
                nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": str(cpus)}}},
            )
            for name, (place, _, cpus) in _DEVICES.items()
            if place == node
        ]

    return deviceobjects.DeviceObjects.of(
        [
            devicecases.template("either", edition.request, uid=uid),
            devicecases.template("shared", _exactly(deviceClassName="large")),
            *(devicecases.device_class(model, model=model) for model in ("large", "small")),
            devicecases.device_class("extended", extended=_EXTENDED),
            *(devicecases.device_slice(node, devices(node)) for node in ("a", "b")),
            _group(),
        ],
        has_groups=has_groups,
    )


def _admitter() -> Admitter:
    made = Admitter()
    made.set_places({"default": admissibility.Place()})
    return made


def _text(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)


def _queue(name: str) -> clusterqueue.ClusterQueue:
    quotas = [
        {"name": each, "nominalQuota": _text(each, amount), "borrowingLimit": _text(each, _BORROWING[each])}
        for each, amount in _NOMINAL.items()
    ]
    group = {"coveredResources": list(_NOMINAL), "flavors": [{"name": "default", "resources": quotas}]}
    spec = {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [group]}
    return decoding.decode({"metadata": {"name": name}, "spec": spec}, clusterqueue.ClusterQueue)


class _Allocated(NamedTuple):
    """What a pod has got, and what the component makes of it."""

    devices: tuple[str, ...]
    use: PodUse


class _World:
    def __init__(self, setting: _Setting) -> None:
        self.setting = setting
        self.edition = setting.editions[0]
        self.recreations = 0
        self.objects = _objects(self.edition, "0", has_groups=setting.has_groups)
        self.now = _BEGIN
        self.stored: dict[str, workload.Workload] = {}
        self.pods: dict[str, list[_Allocated | None]] = {}
        """The live pods; None while their devices are not allocated."""
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
        claims = _Claims() if self.setting.shares_claims else None
        devices = devicerequests.count(
            of, self.objects, _MAPPINGS, gates=DEFAULT, policy=self.setting.policy, claims=claims
        )
        assert isinstance(devices, devicerequests.DeviceRequests), devices
        into.enqueue(of, self.now, devices=devices)

    # What happens

    def submit(self, queue: str, count: int, *, is_sharing: bool) -> None:
        self.made += 1
        name = f"job-{self.made}"
        shares = is_sharing and (self.setting.shares_claims or self.setting.has_groups)
        is_named = shares and not self.setting.has_groups
        own = {"claims": [{"name": "either"}, *([{"name": "shared"}] if shares else [])]}
        asked = {"requests": {_EXTENDED: "1"}} if self.setting.has_sidecars else {}
        of = devicecases.job(
            *(["either", "shared"] if shares and self.setting.has_groups else ["either"]),
            named=["shared"] if is_named else [],
            count=count,
            name=name,
            queue=queue,
            containers=[{"name": "c", "resources": {**own, **asked}}],
            init_containers=[{"name": "s", "restartPolicy": "Always", "resources": asked}],
        )
        self._store(_in_group(of) if shares and self.setting.has_groups else of)
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
            chosen = self.edition.ways[way % len(self.edition.ways)]
            devices = tuple(device for each in chosen.values() for device in each)
            pods[pods.index(None)] = _Allocated(devices, self._use(key, chosen))
            self._settle(key)

    def _use(self, key: str, chosen: Mapping[str, tuple[str, ...]]) -> PodUse:
        """What the component sees of a pod whose claim has these devices."""
        results = [
            {"request": request, "driver": "gpus.example.com", "pool": _DEVICES[each][0], "device": each}
            for request, devices in chosen.items()
            for each in devices
        ]
        claim = devicecases.claim("own", self.edition.request)
        assert isinstance(claim, resourceclaim.ResourceClaim)
        allocated = _allocated_claim(claim, results)
        # A pod only gets devices together with the claim of its group.
        group_results = [{"request": "gpu", "driver": "gpus.example.com", "pool": "a", "device": "large-1"}]
        of_group = _allocated_claim(devicecases.claim("of-group", _exactly(deviceClassName="large")), group_results)
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "labels": {POD_SET_LABEL: "main"}},
            "status": {
                "resourceClaimStatuses": [
                    {"name": "either", "resourceClaimName": "own"},
                    {"name": "shared", "resourceClaimName": "of-group"},
                ]
            },
        }
        made = codec.decode(document)
        assert isinstance(made, pod.Pod)
        use = settlement.use(
            structs.replace(made, spec=self.stored[key].spec.pod_sets[0].template.spec),
            _Claims(allocated, of_group),
            deviceobjects.devices_by_id(self.objects),
            measure=Measure(_MAPPINGS, DEFAULT, self.setting.policy),
            account=deviceaccount.read(self.stored[key]) or deviceaccount.DeviceAccount(),
        )
        assert use is not None
        assert use.charges is not None
        return use

    def recreate(self, edition: int) -> None:
        """The template is deleted, and one of the same name made; who waits is counted anew."""
        self.edition = self.setting.editions[edition % len(self.setting.editions)]
        self.recreations += 1
        self.objects = _objects(self.edition, str(self.recreations), has_groups=self.setting.has_groups)
        for key in sorted(self.pods):
            problem = deviceaccount.template_problem(
                self.stored[key], self.objects, _MAPPINGS, gates=DEFAULT, policy=self.setting.policy
            )
            if problem is not None:
                self._evict(key, problem)
        self.admitter = self.restarted()

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
        uses = [PodUse("main", None) if each is None else each.use for each in self.pods[key]]
        after = settlement.settle(before, uses, gates=DEFAULT)
        if isinstance(after, settlement.Overdrawn):
            assert key in self.replaced, after.message
            self._evict(key, after.message)
        elif after is not before:
            assert _is_lower(after, before)
            self._store(after)
            self.admitter.hold(self.stored[key])

    def _evict(self, key: str, message: str) -> None:
        before = self.stored[key]
        self.end(key)
        evicted = transitions.unreserve(before, reason="Pending", message=message, now=self.now)
        status = structs.replace(evicted.status, reclaimable_pods=())
        self._store(structs.replace(evicted, status=status))
        self._enqueue(self.admitter, self.stored[key])

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
        here = [key for key in self.pods if self.stored[key].spec.queue_name == queue]
        for key in here:
            for each in self.pods[key]:
                for name, amount in self.setting.charges(each.devices if each is not None else ()).items():
                    total[name] += amount
                total["ext"] += 2 if self.setting.has_sidecars else 0
        if any(_shares(self.stored[key]) for key in here):
            for name, amount in self.setting.charges(("large-1",)).items():
                total[name] += amount
        return total


def _shares(of: workload.Workload) -> bool:
    return any(claim.name == "shared" for claim in of.spec.pod_sets[0].template.spec.resource_claims)


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


_NAMES = [*["submit", "cycle"] * 4, *["allocate"] * 5, *["replace"] * 2, "succeed", "end", "restart", "recreate"]


def _take(world: _World, name: str, whom: int, how: int) -> None:
    if name == "submit":
        world.submit(_QUEUES[whom % 2], 1 + how % 2, is_sharing=how < 6)
    elif name == "cycle":
        world.cycle()
    elif name == "restart":
        world.admitter = world.restarted()
    elif name == "recreate":
        if len(world.setting.editions) > 1:
            world.recreate(how)
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("setting", [pytest.param(each, id=name) for name, each in _SETTINGS.items()])
def test_quota_holds_at_any_moment_and_is_settled_in_the_end(setting: _Setting, seed: int) -> None:
    # Histories are long, and few of what a shrinking generator likes to draw lead anywhere.
    chance = random.Random(seed)
    world = _World(setting)
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
