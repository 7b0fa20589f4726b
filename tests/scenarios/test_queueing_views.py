"""What a control plane with queueing shows of itself: explanations, who waits where, shares, its configuration."""

import json
from datetime import UTC, datetime
from typing import Any

from drachma.api import configmap, event
from drachma.client import patches
from drachma.queueing import explanation
from drachma.queueing.component import resources
from drachma.simulate import livecluster
from drachma.simulate.queueingstate import QueueingState
from tests.scenarios import queues


async def _explained(cluster: queues.Queues, job: str) -> explanation.WorkloadExplanation:
    state = QueueingState(await livecluster.read_queueing(cluster.client), datetime(2026, 1, 1, tzinfo=UTC))
    (answer,) = state.explain("default", job)
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


_MAP = "kueue-controller-manager-config"
_FAIR = {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}


def _data(**content: Any) -> dict[str, Any]:
    document = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **content}
    return {"data": {"controller_manager_config.yaml": json.dumps(document)}}


async def test_shares_are_told_while_a_config_map_has_queues_share_fairly_and_a_wrong_one_changes_nothing() -> None:
    async def configure(**content: Any) -> None:
        patch = patches.merge(_data(**content))
        await cluster.client.patch(configmap.ConfigMap, _MAP, namespace="kueue-system", patch=patch)
        await cluster.settle()

    async def shares() -> list[Any]:
        await cluster.advance(1)
        cohort = await cluster.client.get_document(resources.COHORTS, "team")
        queue = await cluster.client.get_document(resources.CLUSTER_QUEUES, "team")
        return [(each.get("status") or {}).get("fairSharing") for each in (queue, cohort)]

    async def told() -> list[tuple[str, str]]:
        events = await cluster.all_of(event.Event)
        return sorted((each.type, each.reason) for each in events if each.involved_object.kind == "ConfigMap")

    async with queues.queues() as cluster:
        cohort = queues.made("Cohort", "team", {"parentName": "all"})
        await cluster.client.create_document(resources.COHORTS, cohort)
        await cluster.create_queue("team", cohort="team", cpu=1)
        await cluster.create_queue("other", cohort="all", cpu=4)
        await cluster.create_job("borrows", pods=3, seconds=600)
        metadata = {"name": _MAP, "namespace": "kueue-system"}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **_data()}
        await cluster.client.create_document(configmap.ConfigMap, made)
        assert await shares() == [None, None]
        assert await told() == []

        await configure(fairSharing=_FAIR)
        assert await shares() == [{"weightedShare": 400}] * 2
        assert await told() == [("Normal", "ConfigurationChanged")]

        await configure(fairSharing={"preemptionStrategies": ["Nonsense"]})
        assert await shares() == [{"weightedShare": 400}] * 2
        assert await told() == [("Normal", "ConfigurationChanged"), ("Warning", "InvalidConfiguration")]

        await configure()
        assert await shares() == [None, None]

        await configure(
            fairSharing=_FAIR,
            integrations={"frameworks": ["batch/job", "pod", "sparkoperator.k8s.io/sparkapplication"]},
        )
        assert await shares() == [{"weightedShare": 400}] * 2
        assert "jobs of these frameworks are not managed: sparkoperator.k8s.io/sparkapplication" in "".join(
            await cluster.events("ConfigurationChanged")
        )
        await cluster.delete(configmap.ConfigMap, _MAP, namespace="kueue-system")
        assert await shares() == [None, None]
