"""What a control plane with queueing shows of itself: explanations."""

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
