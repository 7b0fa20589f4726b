"""Metrics of several components under one roof."""

import prometheus_client
from prometheus_client import exposition

from drachma.process import embedded


def test_a_family_that_two_have_comes_once() -> None:
    first, second, both = (prometheus_client.CollectorRegistry() for _ in range(3))
    for registry, count in ((first, 2), (second, 3)):
        counter = prometheus_client.Counter("things", "Things.", ("kind",), registry=registry)
        counter.labels("a").inc(count)
    counter.labels("b").inc()
    prometheus_client.Gauge("size", "Size.", registry=second).set(7)
    both.register(embedded.MergedMetrics([first, second]))
    lines = exposition.generate_latest(both).decode().splitlines()
    assert lines.count("# TYPE things_total counter") == 1
    assert 'things_total{kind="a"} 5.0' in lines
    assert 'things_total{kind="b"} 1.0' in lines
    assert "size 7.0" in lines


def test_parts_are_asked_anew_each_time() -> None:
    part, whole = prometheus_client.CollectorRegistry(), prometheus_client.CollectorRegistry()
    gauge = prometheus_client.Gauge("size", "Size.", registry=part)
    whole.register(embedded.MergedMetrics([part]))
    gauge.set(1)
    assert whole.get_sample_value("size") == 1
    gauge.set(2)
    assert whole.get_sample_value("size") == 2
