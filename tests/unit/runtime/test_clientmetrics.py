"""Metrics of requests to the API server, by upstream's names."""

import prometheus_client

from drachma.runtime import clientmetrics


def test_requests_are_counted_by_code_host_and_method() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics = clientmetrics.ClientMetrics("https://10.0.0.1:6443/prefix", registry=registry)
    metrics.observe("GET", "200", 0.02)
    metrics.observe("GET", "200", 3.0)
    metrics.observe("POST", "<error>", 0.5)
    read, write = {"host": "10.0.0.1:6443", "method": "GET"}, {"host": "10.0.0.1:6443", "method": "POST"}
    assert registry.get_sample_value("rest_client_requests_total", {**read, "code": "200"}) == 2
    assert registry.get_sample_value("rest_client_requests_total", {**write, "code": "<error>"}) == 1
    labels = {"host": "10.0.0.1:6443", "verb": "GET"}
    assert registry.get_sample_value("rest_client_request_duration_seconds_count", labels) == 2
    assert registry.get_sample_value("rest_client_request_duration_seconds_bucket", {**labels, "le": "0.025"}) == 1
