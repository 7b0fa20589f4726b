"""What queueing measures while jobs wait, run, are preempted and end."""

import functools

import prometheus_client

from drachma.process import queueing
from drachma.queueing.component import resources
from tests.scenarios import queues

_MEASURED = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "metrics": {"enableClusterQueueResources": True},
}


class _Measures:
    """What a component counts in a registry of its own."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()

    def launch(self, cluster: queues.Queues) -> None:
        run = functools.partial(queueing.component, configured=cluster.configured, view=cluster.view)
        cluster.launch("queueing", lambda surroundings: run(surroundings.with_registry(self.registry)))

    def value(self, measure: str, /, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"kueue_{measure}", {**labels, "replica_role": "standalone"})


async def test_queues_are_measured_by_kueues_names_and_labels() -> None:
    async with queues.queues(configuration=_MEASURED) as cluster:
        measures = _Measures()
        await cluster.stop("queueing")
        measures.launch(cluster)
        await cluster.client.create_document(
            resources.WORKLOAD_PRIORITIES, {**queues.made("WorkloadPriorityClass", "urgent", {}), "value": 100}
        )
        await cluster.create_queue(cohort="org", cpu=2)
        await cluster.create_job("long", pods=2, seconds=600)
        await cluster.advance(5)
        await cluster.create_job("short", pods=2, labels={"kueue.x-k8s.io/priority-class": "urgent"}, seconds=30)
        await cluster.settle()

        team = {"cluster_queue": "team"}
        local = {"name": "team", "namespace": "default"}
        assert measures.value("quota_reserved_workloads_total", **team, priority_class="") == 1
        assert measures.value("admitted_workloads_total", **team, priority_class="urgent") == 1
        assert measures.value("local_queue_admitted_workloads_total", **local, priority_class="urgent") == 1
        assert measures.value("admission_wait_time_seconds_count", **team, priority_class="urgent") == 1
        assert measures.value("ready_wait_time_seconds_count", **team, priority_class="") == 1
        evicted = {"reason": "Preempted", "underlying_cause": "", "priority_class": ""}
        assert measures.value("evicted_workloads_total", **team, **evicted) == 1
        assert measures.value("evicted_workloads_once_total", **team, **evicted) == 1
        assert measures.value("local_queue_evicted_workloads_total", **local, **evicted) == 1
        assert measures.value("workload_eviction_latency_seconds_count", **team, reason="Preempted") == 1
        spoilt = {"reason": "Preempted", "underlying_cause": ""}
        assert measures.value("pods_ready_to_evicted_time_seconds_sum", **team, **spoilt) == 5
        assert (
            measures.value("preempted_workloads_total", preempting_cluster_queue="team", reason="InClusterQueue") == 1
        )

        assert measures.value("pending_workloads", **team, status="inadmissible") == 1
        assert measures.value("local_queue_pending_workloads", **local, status="inadmissible") == 1
        why = {"reason": "NoReservation", "underlying_cause": "WaitingForQuota"}
        assert measures.value("unadmitted_workloads", **team, **why) == 1
        assert measures.value("local_queue_unadmitted_workloads", **local, **team, **why) == 1
        assert measures.value("reserving_active_workloads", **team) == 1
        assert measures.value("local_queue_admitted_active_workloads", **local) == 1
        assert measures.value("cluster_queue_status", **team, status="active") == 1
        assert measures.value("local_queue_status", **local, active="True") == 1
        cpu = {"flavor": "default", "resource": "cpu"}
        assert measures.value("cluster_queue_nominal_quota", cohort="org", **team, **cpu) == 2
        assert measures.value("cluster_queue_borrowing_limit", cohort="org", **team, **cpu) == float("inf")
        assert measures.value("cluster_queue_resource_usage", cohort="org", **team, **cpu) == 2
        assert measures.value("local_queue_resource_reservation", **local, **cpu) == 2
        assert measures.value("cluster_queue_resource_pending", **team, resource="cpu") == 2
        assert measures.value("cluster_queue_info", **team, parent_cohort="org", root_cohort="org") == 1
        assert measures.value("cohort_subtree_quota", cohort="org", **cpu) == 2
        assert measures.value("cohort_subtree_admitted_active_workloads", cohort="org") == 1

        await cluster.advance(60)
        assert measures.value("finished_workloads_total", **team, priority_class="urgent") == 1
        assert measures.value("execution_time_seconds_count", **team, priority_class="urgent") == 1
        assert measures.value("admitted_workloads_total", **team, priority_class="") == 2


async def test_resources_and_local_queues_are_measured_as_the_configuration_says() -> None:
    quiet = {**_MEASURED, "metrics": {"localQueueMetrics": {"enable": False}}}
    async with queues.queues(configuration=quiet) as cluster:
        measures = _Measures()
        await cluster.stop("queueing")
        measures.launch(cluster)
        await cluster.create_queue(cpu=2)
        await cluster.create_job("one")
        families = {each.name for each in measures.registry.collect() if each.samples}
        assert "kueue_admitted_active_workloads" in families
        assert not {each for each in families if "local_queue" in each or ("quota" in each and "reserved" not in each)}


async def test_past_usage_is_measured_of_the_local_queues_that_are_chosen() -> None:
    sharing = {"usageHalfLifeTime": "60s", "usageSamplingInterval": "10s"}
    chosen = {"enable": True, "localQueueSelector": {"matchLabels": {"team": "red"}}}
    configuration = {**_MEASURED, "admissionFairSharing": sharing, "metrics": {"localQueueMetrics": chosen}}
    async with queues.queues(configuration=configuration) as cluster:
        measures = _Measures()
        await cluster.stop("queueing")
        measures.launch(cluster)
        await cluster.create_queue(cpu=2)
        local = queues.made("LocalQueue", "red", {"clusterQueue": "team"}, namespace="default")
        local["metadata"]["labels"] = {"team": "red"}
        await cluster.client.create_document(resources.LOCAL_QUEUES, local)
        await cluster.create_job("job", queue="red", seconds=600)
        await cluster.advance(30)

        used = "local_queue_admission_fair_sharing_usage"
        measured = measures.value(used, name="red", namespace="default", cluster_queue="team")
        assert measured is not None
        assert 0 < measured < 1
        assert measures.value(used, name="team", namespace="default", cluster_queue="team") is None
