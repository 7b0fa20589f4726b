"""What a control plane with queueing shows of itself: explanations, and who waits where."""

from datetime import UTC, datetime

from drachma.queueing import explanation
from drachma.simulate import livecluster
from drachma.simulate.queueingstate import QueueingState
from tests.scenarios import queues


async def _explained(cluster: queues.Queues, job: str) -> explanation.WorkloadExplanation:
    name = (await cluster.workload_of(job)).metadata.name
    state = QueueingState(await livecluster.read_queueing(cluster.client), datetime(2026, 1, 1, tzinfo=UTC))
    answer = state.explain(f"default/{name}")
    assert answer is not None
    return answer


async def test_an_explanation_says_what_the_component_says_and_what_would_help() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=3)
        await cluster.create_job("first", pods=2, seconds=60)
        await cluster.create_job("second", pods=2, seconds=60)

        answer = await _explained(cluster, "second")
        assert answer.outcome is explanation.Outcome.DOES_NOT_FIT
        assert answer.message == (await cluster.workload_condition("second", "QuotaReserved"))[2]
        first = (await cluster.workload_of("first")).metadata.name
        assert [each.endings for each in answer.remedies] == [(), (f"default/{first}",)]

        await cluster.advance(90)
        assert (await _explained(cluster, "first")).outcome is explanation.Outcome.FINISHED
        assert (await _explained(cluster, "second")).outcome is explanation.Outcome.ADMITTED


async def test_who_waits_is_shown_from_the_component_that_runs() -> None:
    async with queues.queues() as cluster:
        assert cluster.view.cluster_queue("team", {}) is None
        await cluster.create_queue(cpu=1)
        for name in ("first", "second", "third"):
            await cluster.create_job(name)

        def waiting() -> list[str]:
            items = cluster.view.local_queue("default", "team", {})
            assert items is not None
            assert cluster.view.cluster_queue("team", {}) == items
            return [each["metadata"]["ownerReferences"][0]["name"] for each in items]

        assert waiting() == ["second", "third"]
        await cluster.kill("queueing")
        cluster.launch_queueing()
        await cluster.settle()
        assert waiting() == ["second", "third"]
