"""Admission that asks whether pods find nodes, and the pods that it asks about."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from drachma.queueing.admission import feasibility
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.podsetinfo import Flavors

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class _Nodes:
    """Nodes for pods that ask for one pool, and of workloads for those that are not too large."""

    def __init__(self, pool: str = "", most: int = 9) -> None:
        self._pool = pool
        self._most = most
        self.asked: list[tuple[str, list[str]]] = []

    def obstacle(self, wl: workload.Workload, holders: Iterable[workload.Workload], *, flavors: Flavors) -> str | None:
        self.asked.append((wl.metadata.name, [each.metadata.name for each in holders]))
        pods = list(feasibility.pods(wl, flavors))
        if len(pods) > self._most:
            return "too many"
        return None if all(each.spec.node_selector.get("pool", "") == self._pool for each in pods) else "wrong pool"

    def follow(self, listener: Callable[[], None]) -> None:
        pass


def _admitter(nodes: _Nodes, *, flavors: tuple[str, ...] = ("default",), strategy: str = "BestEffortFIFO") -> Admitter:
    quotas = [{"name": each, "resources": [{"name": "cpu", "nominalQuota": "9"}]} for each in flavors]
    spec = {
        "namespaceSelector": {},
        "queueingStrategy": strategy,
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
    }
    local = {"metadata": {"name": "team", "namespace": "default"}, "spec": {"clusterQueue": "team"}}
    new_admitter = Admitter(placement=nodes)
    new_admitter.set_places({"default": admissibility.Place()})
    new_admitter.set_queues(
        [decoding.decode({"metadata": {"name": "team"}, "spec": spec}, clusterqueue.ClusterQueue)],
        local_queues=[decoding.decode(local, localqueue.LocalQueue)],
        flavors=[decoding.decode(_flavor(each), resourceflavor.ResourceFlavor) for each in flavors],
    )
    return new_admitter


def _flavor(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {} if name == "default" else {"nodeLabels": {"pool": name}}}


def _job(name: str, pods: int, second: int) -> workload.Workload:
    created = _NOW + timedelta(seconds=second)
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "volumes": [{"name": "v"}]}}
    pod_set = {"name": "main", "count": pods, "template": template}
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created.isoformat()}
    return decoding.decode(
        {"metadata": metadata, "spec": {"queueName": "team", "podSets": [pod_set]}}, workload.Workload
    )


def _run(admitter: Admitter) -> dict[str, str]:
    """Cycles until nothing changes: flavors of what was admitted, and why others are not."""
    messages: dict[str, str] = {}
    for _ in range(5):
        report = admitter.run_cycle(_NOW)
        for each in (report.workloads if report is not None else {}).values():
            admission = each.status.admission
            condition = each.status.conditions[0]
            messages[each.metadata.name] = (
                admission.pod_set_assignments[0].flavors["cpu"]
                if admission is not None
                else f"{condition.reason}: {condition.message}"
            )
    return messages


def test_what_finds_no_nodes_waits_and_others_go_before_it() -> None:
    nodes = _Nodes(most=2)
    admitter = _admitter(nodes)
    for position, (name, pods) in enumerate((("wide", 3), ("first", 1), ("second", 2))):
        admitter.enqueue(_job(name, pods, position), _NOW)
    assert _run(admitter) == {"wide": "PlacementFailed: too many", "first": "default", "second": "default"}
    assert admitter.queues["team"].parked == ("default/wide",)
    assert nodes.asked == [("wide", []), ("first", []), ("second", ["first"])]


def test_a_strict_queue_waits_with_it() -> None:
    admitter = _admitter(_Nodes(most=2), strategy="StrictFIFO")
    admitter.enqueue(_job("wide", 3, 0), _NOW)
    admitter.enqueue(_job("first", 1, 1), _NOW)
    assert _run(admitter) == {"wide": "PlacementFailed: too many"}


def test_other_flavors_are_tried() -> None:
    admitter = _admitter(_Nodes(pool="b"), flavors=("a", "b"))
    admitter.enqueue(_job("job", 1, 0), _NOW)
    assert _run(admitter) == {"job": "b"}


def test_the_pods_are_those_that_will_be_made() -> None:
    admitter = _admitter(_Nodes(pool="a"), flavors=("a",))
    admitter.enqueue(_job("job", 2, 0), _NOW)
    report = admitter.run_cycle(_NOW)
    assert report is not None
    pods = list(feasibility.pods(report.workloads["default/job"], admitter.snapshot.flavors))
    assert [each.metadata.name for each in pods] == ["job-main-0", "job-main-1"]
    assert {each.metadata.uid for each in pods} == {"job/main/0", "job/main/1"}
    assert pods[0].metadata.labels["app"] == "job"
    assert pods[0].metadata.labels["kueue.x-k8s.io/podset"] == "main"
    assert dict(pods[0].metadata.annotations) == {"kueue.x-k8s.io/workload": "job"}
    assert not pods[0].spec.volumes
