"""Jobs that wait for quota, from creation to the end: the job's, the workload's and admission's part, put together."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from drachma.api import codec
from drachma.queueing import conditions
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.configuration.configuration import DeviceClassMapping
from drachma.queueing.devices import mappings as devicemappings
from drachma.queueing.devices import objects as deviceobjects
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.jobs import reconciler
from drachma.queueing.jobs.interface import controller_of
from drachma.queueing.jobs.settings import Environment, JobSettings, Priorities
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.lifecycle import workloadreconcile, workloadstep
from drachma.queueing.workloads import admissibility, workloadstate

_NAMESPACE = "team"
_GPU_CLASS = "gpu.example.com"
_ONE_GPU = {"deviceClassName": _GPU_CLASS, "allocationMode": "ExactCount", "count": 1}
_FLAVOR = {"metadata": {"name": "fast"}, "spec": {"nodeLabels": {"pool": "fast"}}}
_LOCAL_QUEUE = {"metadata": {"name": "jobs", "namespace": _NAMESPACE}, "spec": {"clusterQueue": "cluster"}}
_TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu", "namespace": _NAMESPACE},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": _ONE_GPU}]}}},
}


class _Cluster:
    """Objects in memory, and everything that looks at them, one after the other until nothing changes."""

    def __init__(self, *, gpus: int) -> None:
        quotas = [{"name": "gpus", "nominalQuota": str(gpus)}, {"name": "cpu", "nominalQuota": "100"}]
        spec = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {"coveredResources": ["gpus", "cpu"], "flavors": [{"name": "fast", "resources": quotas}]}
            ],
        }
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.workloads: dict[str, workload.Workload] = {}
        self._pod_sets: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._queue = decoding.decode({"metadata": {"name": "cluster"}, "spec": spec}, clusterqueue.ClusterQueue)
        self._local = decoding.decode(_LOCAL_QUEUE, localqueue.LocalQueue)
        self._flavor = decoding.decode(_FLAVOR, resourceflavor.ResourceFlavor)
        self._admitter = Admitter()
        self._admitter.set_places({_NAMESPACE: admissibility.Place()})
        self._admitter.set_queues([self._queue], local_queues=[self._local], flavors=[self._flavor])

    def create(self, name: str, *, pods: int, priority: str = "") -> None:
        labels = {"kueue.x-k8s.io/queue-name": "jobs"}
        if priority:
            labels["kueue.x-k8s.io/priority-class"] = priority
        container = {"name": "c", "image": "train", "resources": {"claims": [{"name": "g"}], "requests": {"cpu": "1"}}}
        pod_spec = {"containers": [container], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}
        self.jobs[name] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": _NAMESPACE, "uid": f"uid-{name}", "labels": labels},
            "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": pod_spec}},
        }

    def complete(self, name: str) -> None:
        self.jobs[name]["status"] = {"conditions": [{"type": "Complete", "status": "True", "message": "done"}]}

    def is_running(self, name: str) -> bool:
        return not self.jobs[name]["spec"]["suspend"]

    def workload_of(self, name: str) -> workload.Workload:
        (subject,) = [each for each in self.workloads.values() if _owner_name(each) == name]
        return subject

    def settle(self) -> None:
        """Looks at everything until nothing moves; times of conditions may."""
        rounds, before = 0, None
        while before != self._state() or rounds < 3:
            before, rounds = self._state(), rounds + 1
            assert rounds < 20, "it does not come to rest"
            self.now += timedelta(seconds=1)
            self._look_at_jobs()
            self._look_at_workloads()
            self._admit()

    def _state(self) -> Any:
        return self.jobs.copy(), {
            key: (workloadstate.is_admitted(each), workloadstate.is_evicted(each), workloadstate.is_finished(each))
            for key, each in self.workloads.items()
        }

    def _look_at_jobs(self) -> None:
        for name in sorted({*self.jobs, *map(_owner_name, self.workloads.values())}):
            document = self.jobs.get(name)
            job = BatchJob.missing(_NAMESPACE, name) if document is None else BatchJob(document)
            environment = Environment(
                namespace_labels={},
                pod_sets=lambda subject: self._pod_sets[workloadstate.key(subject)],
                workloads=list(self.workloads.values()),
                flavors={"fast": self._flavor},
                priorities=Priorities(workload_classes={"urgent": 100}),
            )
            result = reconciler.reconcile(job, environment, self.now, settings=JobSettings())
            assert result.error == ""
            self.workloads = dict(result.workloads)
            self._pod_sets |= result.new_pod_sets
            if not job.is_gone:
                self.jobs[name] = dict(job.document)

    def _look_at_workloads(self) -> None:
        mapping = DeviceClassMapping(name="gpus", device_class_names=(_GPU_CLASS,))
        around = workloadstep.Neighbourhood(
            local_queue=self._local,
            cluster_queue=self._queue,
            is_queue_active=True,
            places={_NAMESPACE: admissibility.Place()},
            objects=deviceobjects.DeviceObjects.of([codec.decode(_TEMPLATE)]),
            mappings=devicemappings.DeviceMappings.of([mapping]),
        )
        for key, subject in list(self.workloads.items()):
            outcome = workloadreconcile.reconcile(subject, around, self.now)
            assert outcome.workload is not None
            self.workloads[key] = after = outcome.workload
            if workloadreconcile.is_admissible(after, JobSettings().gates):
                self._admitter.release(key)
                self._admitter.enqueue(after, self.now, devices=outcome.devices)
            elif workloadstate.is_finished(after):
                self._admitter.release(key)

    def _admit(self) -> None:
        self._admitter.retry(["cluster"], self.now)
        report = self._admitter.run_cycle(self.now)
        self.workloads |= report.workloads if report is not None else {}


def _owner_name(subject: workload.Workload) -> str:
    owner = controller_of(subject)
    assert owner is not None
    return owner.name


def test_a_job_waits_until_the_devices_of_another_are_free() -> None:
    cluster = _Cluster(gpus=3)
    cluster.create("first", pods=2)
    cluster.create("second", pods=2)

    cluster.settle()

    assert (cluster.is_running("first"), cluster.is_running("second")) == (True, False)
    assert cluster.jobs["first"]["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "fast"}
    waiting = conditions.find(cluster.workload_of("second").status.conditions, conditions.QUOTA_RESERVED)
    assert waiting is not None
    assert "insufficient unused quota for gpus in flavor fast, 1 more needed" in waiting.message

    cluster.complete("first")
    cluster.settle()

    assert cluster.is_running("second")


def test_an_urgent_job_takes_the_devices_of_another_which_comes_back_unchanged() -> None:
    cluster = _Cluster(gpus=2)
    cluster.create("patient", pods=2)
    template = cluster.jobs["patient"]["spec"]["template"]
    cluster.settle()
    assert cluster.is_running("patient")

    cluster.create("urgent", pods=1, priority="urgent")
    cluster.settle()

    assert (cluster.is_running("patient"), cluster.is_running("urgent")) == (False, True)
    assert cluster.jobs["patient"]["spec"]["template"] == template

    cluster.complete("urgent")
    cluster.settle()

    assert cluster.is_running("patient")


def test_a_deleted_job_gives_its_devices_back() -> None:
    cluster = _Cluster(gpus=1)
    cluster.create("first", pods=1)
    cluster.settle()
    cluster.create("second", pods=1)
    cluster.settle()
    assert not cluster.is_running("second")

    del cluster.jobs["first"]
    cluster.settle()

    assert cluster.is_running("second")
