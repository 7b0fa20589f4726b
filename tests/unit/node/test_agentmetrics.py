"""Metrics of agents: the sums of a process, and the numbers of each node."""

import prometheus_client

from drachma.node import agentmetrics

CALL = ("gpu.example.com", "/service/NodePrepareResources", "OK")


def _value(source: prometheus_client.CollectorRegistry, name: str, **labels: str) -> float | None:
    return source.get_sample_value(name, labels)


def test_a_process_exports_sums_and_a_node_its_own_numbers() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics = agentmetrics.AgentMetrics(registry)
    for node in ("a", "b"):
        metrics.node_metrics(node).observe_call(*CALL, seconds=1.0)
        metrics.node_metrics(node).count_start("container")
    labels = dict(zip(("driver_name", "method_name", "grpc_status_code"), CALL, strict=True))
    assert _value(registry, "dra_grpc_operations_duration_seconds_count", **labels) == 2
    assert _value(registry, "dra_grpc_operations_duration_seconds_sum", **labels) == 2.0
    assert (
        'kubelet_started_containers_total{container_type="container"} 1.0' in metrics.node_metrics("a").text().decode()
    )
    metrics.forget("a")
    assert _value(registry, "kubelet_started_containers_total", container_type="container") == 2
    assert "kubelet_started_containers_total{" not in metrics.node_metrics("a").text().decode()


def test_claims_that_need_their_driver_are_held_until_they_are_unprepared() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics = agentmetrics.AgentMetrics(registry, labels_nodes=True)
    claims = [agentmetrics.ClaimCount(["d"], True), agentmetrics.ClaimCount(["d"], False)]
    metrics.node_metrics("a").watch_claims(lambda: claims)
    metrics.node_metrics("b").watch_claims(list)
    assert _value(registry, "dra_resource_claims_in_use", driver_name="d", node="a") == 1
    assert _value(registry, "dra_resource_claims_in_use", driver_name="<any>", node="b") == 0
    assert _value(registry, "drachma_dra_resource_claims_held", driver_name="d", node="a") == 2
    own = metrics.node_metrics("a").text().decode()
    assert 'dra_resource_claims_in_use{driver_name="d"} 1.0' in own, "as a kubelet has it"
