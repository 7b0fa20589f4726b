"""Queues that take turns by past usage, as a component: who used much yields, until that is forgotten."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma import errors
from drachma.api import job
from drachma.client import patches
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.kinds import workload
from drachma.simulate import livecluster
from drachma.simulate.queueingstate import QueueingState
from drachma.values import quantity
from tests.scenarios import queues

SHARING: dict[str, Any] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "admissionFairSharing": {"usageHalfLifeTime": "60s", "usageSamplingInterval": "10s"},
}

_LONG = 100_000


async def _create_queues(cluster: queues.Queues, *, cpu: int = 2, mode: str = "UsageBasedAdmissionFairSharing") -> None:
    """The cluster queue ``team``, and behind it the local queues ``heavy`` and ``light``."""
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "admissionScope": {"admissionMode": mode},
    }
    await cluster.client.create_document(resources.CLUSTER_QUEUES, queues.made("ClusterQueue", "team", spec))
    for name in ("heavy", "light"):
        local = queues.made("LocalQueue", name, {"clusterQueue": "team"}, namespace="default")
        await cluster.client.create_document(resources.LOCAL_QUEUES, local)
    await cluster.advance(1)


async def _consumed(cluster: queues.Queues, name: str) -> dict[str, str]:
    """What the status of a local queue says that it has used."""
    document = await cluster.client.get_document(resources.LOCAL_QUEUES, name, namespace="default")
    sharing = document["status"]["fairSharing"]
    assert sharing["weightedShare"] == 0
    consumed: dict[str, str] = sharing["admissionFairSharingStatus"]["consumedResources"]
    return consumed


async def _cores(cluster: queues.Queues, name: str) -> float:
    return quantity.Quantity.parse((await _consumed(cluster, name))["cpu"]).as_approximate_float()


def _waiting(cluster: queues.Queues) -> list[str]:
    items = cluster.view.cluster_queue("team", {})
    assert items is not None
    return [each["metadata"]["ownerReferences"][0]["name"] for each in items]


async def _running(cluster: queues.Queues, *names: str) -> list[str]:
    return [each for each in names if not await cluster.is_suspended(each)]


async def _positions(cluster: queues.Queues, *names: str) -> list[int]:
    """The places that explanations give, which know nothing but what objects say."""
    state = QueueingState(
        await livecluster.read_queueing(cluster.client), datetime(2026, 1, 1, tzinfo=UTC), configured=cluster.configured
    )
    return [answer.position for each in names for answer in state.explain("default", each)]


async def test_who_used_much_yields_until_it_is_forgotten() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        assert await _consumed(cluster, "heavy") == {}
        await cluster.create_job("h1", queue="heavy", pods=2, seconds=60)
        await cluster.create_job("h2", queue="heavy", pods=2, seconds=60)
        await cluster.advance(1)
        assert await _running(cluster, "h1", "h2") == ["h1"]
        assert await _cores(cluster, "heavy") == pytest.approx(2 * (1 - 0.5 ** (10 / 60)), abs=0.05)

        await cluster.create_job("l1", queue="light", pods=2, seconds=120)
        await cluster.advance(1)
        await cluster.create_job("l2", queue="light", pods=2, seconds=60)
        assert _waiting(cluster) == ["l1", "l2", "h2"], "the light queue has used nothing"
        await cluster.advance(30)
        assert await _positions(cluster, "l1", "l2", "h2") == [1, 2, 3]
        assert 0.6 < await _cores(cluster, "heavy") < 1

        await cluster.advance(60)
        assert await _running(cluster, "h2", "l1", "l2") == ["l1"]
        assert await _cores(cluster, "light") > 0
        await cluster.advance(80)
        light, heavy = await _cores(cluster, "light"), await _cores(cluster, "heavy")
        assert light > heavy > 0, "one has grown, and the other decayed_fraction"
        assert _waiting(cluster) == ["h2", "l2"]
        assert await _positions(cluster, "h2", "l2") == [1, 2]

        await cluster.advance(60)
        assert await _running(cluster, "h2", "l2") == ["h2"]
        await cluster.advance(120)
        assert await _running(cluster, "h2", "l2") == ["h2", "l2"]


async def test_an_admission_counts_before_anything_is_sampled() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        hold, go = (patches.merge({"spec": {"stopPolicy": policy}}) for policy in ("Hold", "None"))
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=hold)
        for name, queue in (("h1", "heavy"), ("h2", "heavy"), ("l1", "light"), ("l2", "light")):
            await cluster.create_job(name, queue=queue, seconds=_LONG)
            await cluster.advance(1)
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=go)
        await cluster.settle()
        assert await _running(cluster, "h1", "h2", "l1", "l2") == ["h1", "l1"]


async def test_a_reservation_counts_until_its_job_is_gone() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        await cluster.create_check("team")
        for name, queue, pods in (("h1", "heavy", 1), ("h2", "heavy", 2), ("l1", "light", 2)):
            await cluster.create_job(name, queue=queue, pods=pods, seconds=_LONG)
            await cluster.advance(1)
        assert (await cluster.workload_of("h1")).status.admission is not None
        assert _waiting(cluster) == ["l1", "h2"]
        assert await _consumed(cluster, "heavy") == {}, "it is not used before it is admitted"
        await cluster.delete(job.Job, "h1")
        reserved = [name for name in ("h2", "l1") if (await cluster.workload_of(name)).status.admission is not None]
        assert reserved == ["h2"], "nothing is charged any more, and the older one is first"


async def test_a_reservation_counts_until_its_workload_is_deleted() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        await cluster.create_check("team")
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        for name, queue, pods in (("h1", "heavy", 1), ("h2", "heavy", 2), ("l1", "light", 2)):
            spec = {"queueName": queue, "podSets": [{"name": "main", "count": pods, "template": template}]}
            document = queues.made("Workload", name, spec, namespace="default")
            await cluster.client.create_document(resources.WORKLOADS, document)
            await cluster.advance(1)
        await cluster.delete(resources.WORKLOADS, "h1")
        left = await cluster.all_of(resources.WORKLOADS)
        assert {each.metadata.name: each.status.admission is not None for each in left} == {"h2": True, "l1": False}


async def test_an_admission_that_is_not_written_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    written = workloadwrites.write_status
    refused: list[str] = []

    async def refusing_once(client: Any, before: workload.Workload, after: workload.Workload) -> Any:
        if after.status.admission is not None and not refused:
            refused.append(after.spec.queue_name)
            raise errors.ObjectNotFoundError({"message": "not now"})
        return await written(client, before, after)

    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        weight = patches.merge({"spec": {"fairSharing": {"weight": "100m"}}})
        await cluster.client.patch(resources.LOCAL_QUEUES, "heavy", namespace="default", patch=weight)
        hold, go = (patches.merge({"spec": {"stopPolicy": policy}}) for policy in ("Hold", "None"))
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=hold)
        for name, queue in (("h1", "heavy"), ("l1", "light")):
            await cluster.create_job(name, queue=queue, pods=2, seconds=_LONG)
            await cluster.advance(1)
        monkeypatch.setattr(workloadwrites, "write_status", refusing_once)
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=go)
        await cluster.settle()
        assert refused == ["heavy"]
        assert await _running(cluster, "h1", "l1") == ["l1"]
        await cluster.create_job("l2", queue="light", pods=2, seconds=_LONG)
        assert _waiting(cluster) == ["h1", "l2"], "the heavy queue has used nothing"


@pytest.mark.parametrize("moments", range(6))
async def test_a_component_that_is_killed_remembers_what_it_has_shown(moments: int) -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        await cluster.create_job("h1", queue="heavy", pods=2, seconds=_LONG)
        await cluster.advance(45)
        before = await _cores(cluster, "heavy")
        await cluster.put_job("h2", queue="heavy", pods=2, seconds=30)
        await cluster.put_job("l1", queue="light", pods=2, seconds=30)
        await cluster.let_pass(moments * 3)
        await cluster.kill("queueing")
        await cluster.settle()
        await cluster.advance(3600)

        cluster.launch_queueing()
        await cluster.settle()
        assert await _cores(cluster, "heavy") == pytest.approx(before, abs=0.2), "nobody saw the hour that passed"
        assert _waiting(cluster) == ["l1", "h2"]
        await cluster.delete(job.Job, "h1")
        assert await _running(cluster, "h2", "l1") == ["l1"]


async def test_a_strict_queue_goes_on_with_another_when_usage_has_faded() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        patch = patches.merge({"spec": {"queueingStrategy": "StrictFIFO"}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await cluster.create_job("l-before", queue="light", pods=2, seconds=60)
        await cluster.advance(70)
        await cluster.create_job("h-runs", queue="heavy", seconds=_LONG)
        await cluster.create_job("h-large", queue="heavy", pods=2, seconds=_LONG)
        await cluster.create_job("l-small", queue="light", seconds=_LONG)
        await cluster.advance(5)
        assert _waiting(cluster) == ["h-large", "l-small"]
        assert await _running(cluster, "h-runs", "l-small") == ["h-runs"], "who is first does not fit, and others wait"

        await cluster.advance(120)
        assert await _running(cluster, "h-large", "l-small") == ["l-small"]


async def test_weights_matter_as_soon_as_they_change() -> None:
    async with queues.queues(configuration=SHARING) as cluster:
        await _create_queues(cluster)
        await cluster.create_job("runs", queue="light", pods=2, seconds=_LONG)
        await cluster.advance(30)
        for name in ("heavy", "light"):
            await cluster.create_job(name, queue=name, seconds=_LONG)
        assert _waiting(cluster) == ["heavy", "light"]
        weight = patches.merge({"spec": {"fairSharing": {"weight": "0"}}})
        await cluster.client.patch(resources.LOCAL_QUEUES, "heavy", namespace="default", patch=weight)
        await cluster.settle()
        assert _waiting(cluster) == ["light", "heavy"]


async def test_a_configuration_that_comes_later_begins_to_remember_and_another_keeps_it() -> None:
    async with queues.queues(configuration={**SHARING, "admissionFairSharing": None}) as cluster:
        await _create_queues(cluster)
        await cluster.create_job("h1", queue="heavy", pods=2, seconds=_LONG)
        await cluster.advance(30)
        document = await cluster.client.get_document(resources.LOCAL_QUEUES, "heavy", namespace="default")
        assert "fairSharing" not in document["status"]

        cluster.configured.offer(SHARING)
        await cluster.advance(31)
        remembered = await _cores(cluster, "heavy")
        assert remembered == pytest.approx(2 * (1 - 0.5**0.5), abs=0.1)

        longer = {**SHARING, "admissionFairSharing": {"usageHalfLifeTime": "10h", "usageSamplingInterval": "10s"}}
        cluster.configured.offer(longer)
        await cluster.advance(30)
        assert await _cores(cluster, "heavy") == pytest.approx(remembered, abs=0.05)
        cluster.configured.offer({**SHARING, "featureGates": {"AdmissionFairSharing": False}})
        await cluster.advance(600)
        assert await _cores(cluster, "heavy") == pytest.approx(remembered, abs=0.05), "nobody looks at it any more"
