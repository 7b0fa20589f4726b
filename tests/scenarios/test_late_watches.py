"""Components whose watches are late: decisions rest on their own writes, so no limit is passed and nothing is twice.

The checks follow every revision that the store has, not only what is left at the end.
"""

import contextlib
import functools
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from drachma.api import job, meta, pod, resourceclaim
from drachma.claims import ownership
from drachma.node.simulation import hardware
from drachma.process import nodeagents
from drachma.queueing.component import resources
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Informers
from drachma.runtime.informer import Handler
from drachma.testing import manualclock
from tests.scenarios import controlplane, lateclient, queues
from tests.scenarios.churn import churning


class QuotaWatch:
    """Highest number of quota units that workloads of each cluster queue held at the same revision."""

    def __init__(self) -> None:
        self._units: dict[str, tuple[str, int]] = {}
        self.highest: Counter[str] = Counter()

    def put(self, held: workload.Workload) -> None:
        """Count a workload as it is stored now."""
        admission = held.status.admission
        if workloadstate.has_reservation(held) and not workloadstate.is_finished(held) and admission is not None:
            pods = sum(each.count or 0 for each in admission.pod_set_assignments)
            pods -= sum(each.count for each in held.status.reclaimable_pods)
            self._units[held.metadata.uid] = admission.cluster_queue, pods
        else:
            self._units.pop(held.metadata.uid, None)
        totals: Counter[str] = Counter()
        for queue, pods in self._units.values():
            totals[queue] += pods
        self.highest |= totals

    def drop(self, gone: meta.Object) -> None:
        """Forget a workload that is gone."""
        self._units.pop(gone.metadata.uid, None)


@contextlib.asynccontextmanager
async def _quota_watch(plane: queues.Queues) -> AsyncIterator[QuotaWatch]:
    """Observe all workloads through the plane's own client, which hears of every write at once and in order."""
    watch = QuotaWatch()
    async with Informers(plane.client, clock=plane.clock) as informers:
        informers.of(resources.WORKLOADS).add_handler(
            Handler(added=watch.put, updated=lambda _, new: watch.put(new), deleted=watch.drop)
        )
        await informers.wait_synced()
        yield watch


@pytest.mark.parametrize("lost", [pytest.param(0.0, id="answered"), pytest.param(0.2, id="answers-lost")])
@pytest.mark.parametrize("seed", range(3))
async def test_queueing_never_exceeds_quota(seed: int, lost: float) -> None:
    rng = random.Random(seed)
    clock = manualclock.ManualClock()
    wrap = functools.partial(lateclient.late, seed=seed, clock=clock, seconds=2.0, lost=lost)
    async with queues.queues(nodes=4, wrap=wrap, clock=clock) as plane, _quota_watch(plane) as watch:
        await plane.create_queue("team", cpu=4)
        await plane.create_queue("other", cpu=3)
        await plane.advance(10)
        for number in range(24):
            pods = rng.choice((1, 1, 2))
            queue = rng.choice(("team", "other"))
            await plane.put_job(f"job-{number}", queue=queue, pods=pods, seconds=rng.randrange(1, 12))
            await plane.advance(rng.uniform(0, 2))
        for _ in range(200):
            await plane.advance(4)
            if all(workloadstate.is_finished(each) for each in await plane.all_of(resources.WORKLOADS)):
                break
        assert watch.highest == {"team": 4, "other": 3}
        assert all(workloadstate.is_finished(each) for each in await plane.all_of(resources.WORKLOADS))


@pytest.mark.parametrize("seed", range(3))
async def test_no_job_escapes_its_queue_without_webhooks(seed: int) -> None:
    """The Job controller sees Jobs earlier than queueing, and starts pods that queueing has to stop."""
    rng = random.Random(seed)
    clock = manualclock.ManualClock()
    wrap = functools.partial(lateclient.late, seed=seed, clock=clock, seconds=2.0)
    async with queues.queues(nodes=4, has_webhooks=False, wrap=wrap, clock=clock) as plane:
        await plane.create_queue("team", cpu=4)
        await plane.advance(10)
        for number in range(20):
            await plane.put_job(f"job-{number}", pods=rng.choice((1, 2)), seconds=600)
            await plane.advance(rng.uniform(0, 2))
        await plane.advance(60)
        owners = {
            each.name for held in await plane.all_of(resources.WORKLOADS) for each in held.metadata.owner_references
        }
        assert owners == {f"job-{number}" for number in range(20)}
        assert await plane.phases() == {"Running": 4}


@pytest.mark.parametrize("seed", [3, 8])
async def test_schedulers_and_claims_keep_their_invariants(seed: int) -> None:
    await churning.run(seed, 100, late_seconds=1.0)


class PodCounts:
    """Highest number of live pods that each owner had at the same revision, and names of claims made for each pod."""

    def __init__(self) -> None:
        self._pods: dict[str, str] = {}
        self.highest: Counter[str] = Counter()
        self.claims: dict[str, set[str]] = {}

    def put_pod(self, stored: pod.Pod) -> None:
        """Count a pod as it is stored now."""
        is_live = stored.status.phase not in ("Succeeded", "Failed") and stored.metadata.deletion_timestamp is None
        owner = next((each for each in stored.metadata.owner_references if each.controller), None)
        if is_live and owner is not None:
            self._pods[stored.metadata.uid] = f"{owner.kind}/{owner.name}"
        else:
            self._pods.pop(stored.metadata.uid, None)
        self.highest |= Counter(self._pods.values())

    def drop_pod(self, gone: pod.Pod) -> None:
        """Forget a pod that is gone."""
        self._pods.pop(gone.metadata.uid, None)

    def put_claim(self, stored: resourceclaim.ResourceClaim) -> None:
        """Remember which pod a claim was made for."""
        owner = ownership.owning_pod(stored)
        if owner is not None:
            self.claims.setdefault(owner.uid, set()).add(stored.metadata.name)


_WORKLOADS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: web}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data}
spec:
  replicas: 2
  serviceName: data
  selector: {matchLabels: {app: data}}
  template: {metadata: {labels: {app: data}}, spec: {containers: [{name: c, image: data}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe}
spec:
  selector: {matchLabels: {app: probe}}
  template: {metadata: {labels: {app: probe}}, spec: {containers: [{name: c, image: probe}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 5
  template:
    metadata: {annotations: {simulation.drachma.dev/run-seconds: "3"}}
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
      containers: [{name: c, image: train, resources: {claims: [{name: gpu}]}}]
"""


@pytest.mark.parametrize("seed", range(3))
async def test_controllers_make_nothing_twice(seed: int) -> None:
    rng = random.Random(seed)
    clock = manualclock.ManualClock()
    wrap = functools.partial(lateclient.late, seed=seed, clock=clock, seconds=2.0)
    counts = PodCounts()
    async with (
        controlplane.control_plane(wrap=wrap, clock=clock) as plane,
        Informers(plane.client, clock=plane.clock) as informers,
    ):
        informers.of(pod.Pod).add_handler(
            Handler(added=counts.put_pod, updated=lambda _, new: counts.put_pod(new), deleted=counts.drop_pod)
        )
        informers.of(resourceclaim.ResourceClaim).add_handler(
            Handler(added=counts.put_claim, updated=lambda _, new: counts.put_claim(new))
        )
        machines = hardware.build("gpu-server", 2)
        plane.launch("agents", functools.partial(nodeagents.simulated_machines, machines=machines))
        await plane.advance(5)
        await plane.apply(_WORKLOADS)
        for _ in range(12):
            await plane.advance(rng.uniform(0, 5))
            names = sorted(each.metadata.name for each in await plane.all_of(pod.Pod))
            if names and rng.random() < 0.5:
                await plane.delete(pod.Pod, rng.choice(names))
        # Each deleted pod of the Job counts as a failure, and the Job waits longer after each.
        await plane.advance(900)
        live = Counter(
            next(each.name for each in found.metadata.owner_references)
            for found in await plane.all_of(pod.Pod)
            if found.status.phase == "Running"
        )
        finished = await plane.client.get_document(job.Job, "train", namespace="default")
    assert counts.highest == {"ReplicaSet/web": 3, "StatefulSet/data": 2, "DaemonSet/probe": 2, "Job/train": 2}
    assert live == {"web": 3, "data": 2, "probe": 2}
    assert finished["status"]["succeeded"] == 5
    assert all(len(names) == 1 for names in counts.claims.values())
