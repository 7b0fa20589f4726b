"""Elastic jobs as users have them: they grow and shrink while they run, within what their queue has."""

from drachma.api import job, pod
from drachma.client import patches
from drachma.queueing.component import resources
from drachma.queueing.jobs import elastic
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from tests.scenarios import queues


async def _create(cluster: queues.Queues, name: str, *, pods: int, completions: int) -> None:
    document = queues.made(
        "Job",
        name,
        {
            "parallelism": pods,
            "completions": completions,
            "template": {
                "metadata": {"annotations": {"simulation.drachma.dev/run-seconds": "600"}},
                "spec": {
                    "containers": [{"name": "c", "image": "train", "resources": {"requests": {"cpu": "1"}}}],
                    "restartPolicy": "Never",
                },
            },
        },
        namespace="default",
        api_version="batch/v1",
    )
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    document["metadata"]["annotations"] = {workload.ELASTIC: "true"}
    await cluster.client.create_document(job.Job, document)
    await cluster.settle()


async def _resize(cluster: queues.Queues, name: str, pods: int) -> None:
    await cluster.client.patch(job.Job, name, namespace="default", patch=patches.merge({"spec": {"parallelism": pods}}))
    await cluster.settle()


async def _pods(cluster: queues.Queues) -> tuple[int, int]:
    """How many run, and how many are held back."""
    pods = [each for each in await cluster.all_of(pod.Pod) if each.metadata.labels.get("job-name") == "grows"]
    running = sum(each.status.phase == "Running" for each in pods)
    return running, sum(elastic.is_gated(each) for each in pods)


async def _slices(cluster: queues.Queues) -> dict[int, str]:
    """Of each workload of the job by its size: whether it runs, waits or is over, and why."""
    told = {}
    for each in await cluster.all_of(resources.WORKLOADS):
        if any(owner.name == "grows" for owner in each.metadata.owner_references):
            finished = [c.reason for c in each.status.conditions if c.type == "Finished" and c.status == "True"]
            state = "admitted" if workloadstate.is_admitted(each) else "waits"
            told[int(each.spec.pod_sets[0].count)] = finished[0] if finished else state
    return told


async def test_a_job_grows_when_there_is_quota_and_runs_on_while_it_waits_for_it() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)
        await _create(cluster, "grows", pods=2, completions=9)
        await cluster.create_job("other", pods=1)
        assert await _pods(cluster) == (2, 0)

        await _resize(cluster, "grows", 4)
        assert not await cluster.is_suspended("grows")
        assert await _pods(cluster) == (2, 2)
        assert await _slices(cluster) == {2: "admitted", 4: "waits"}

        await cluster.delete(job.Job, "other")
        await cluster.advance(5)
        assert await _slices(cluster) == {2: "WorkloadSliceReplaced", 4: "admitted"}
        assert await _pods(cluster) == (4, 0)
        status = await cluster.status_of("team")
        assert status["flavorsUsage"][0]["resources"][0]["total"] == "4"


async def test_a_job_shrinks_at_once_and_leaves_its_quota_to_others() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=3)
        await _create(cluster, "grows", pods=3, completions=9)
        await cluster.create_job("other", pods=2)
        assert await cluster.is_suspended("other")

        await _resize(cluster, "grows", 1)
        await cluster.advance(5)
        assert await _pods(cluster) == (1, 0)
        assert await _slices(cluster) == {1: "admitted"}
        assert not await cluster.is_suspended("other")


async def test_a_job_that_grows_twice_before_there_is_quota_waits_with_its_last_size() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)
        await _create(cluster, "grows", pods=1, completions=9)
        await cluster.create_job("other", pods=3)

        await _resize(cluster, "grows", 3)
        await _resize(cluster, "grows", 4)
        assert await _slices(cluster) == {1: "admitted", 4: "waits"}
        assert await _pods(cluster) == (1, 3)

        await _resize(cluster, "grows", 1)
        await cluster.advance(5)
        assert await _pods(cluster) == (1, 0)


async def test_an_elastic_job_that_is_preempted_stops_as_a_whole_and_comes_back() -> None:
    async with queues.queues() as cluster:
        await cluster.client.create_document(
            resources.WORKLOAD_PRIORITIES, {**queues.made("WorkloadPriorityClass", "urgent", {}), "value": 100}
        )
        await cluster.create_queue(cpu=3)
        await _create(cluster, "grows", pods=2, completions=9)
        await _resize(cluster, "grows", 3)
        assert await _pods(cluster) == (3, 0)

        await cluster.create_job("short", pods=3, seconds=30, labels={"kueue.x-k8s.io/priority-class": "urgent"})
        await cluster.advance(5)
        assert await cluster.is_suspended("grows")
        assert not await cluster.is_suspended("short")

        await cluster.advance(60)
        await cluster.advance(5)
        assert not await cluster.is_suspended("grows")
        assert await _pods(cluster) == (3, 0)
