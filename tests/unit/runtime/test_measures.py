"""Measures come out as those of prometheus_client do."""

import prometheus_client
import pytest

from drachma.runtime import measures


def _lines(registry: prometheus_client.CollectorRegistry) -> list[str]:
    text = prometheus_client.generate_latest(registry).decode()
    return sorted(line for line in text.splitlines() if "_created" not in line)


@pytest.mark.parametrize("labels", [pytest.param((), id="without-labels"), pytest.param(("a", "b"), id="with-labels")])
def test_a_histogram_looks_like_the_librarys(labels: tuple[str, ...]) -> None:
    ours, theirs = prometheus_client.CollectorRegistry(), prometheus_client.CollectorRegistry()
    bounds = (1e-08, 0.001, 0.5, 1.0, 16.0)
    mine = measures.Histograms("time_seconds", "How long.", labels, bounds=bounds, registry=ours).of(*labels)
    family = prometheus_client.Histogram("time_seconds", "How long.", labels, buckets=bounds, registry=theirs)
    library_metric = family.labels(*labels) if labels else family
    for value in (0.0, 1e-08, 0.0005, 0.5, 0.50001, 3, 16, 17, 1000):
        mine.observe(value)
        library_metric.observe(value)
    assert _lines(ours) == _lines(theirs)


@pytest.mark.parametrize("labels", [pytest.param((), id="without-labels"), pytest.param(("a", "b"), id="with-labels")])
def test_a_counter_looks_like_the_librarys(labels: tuple[str, ...]) -> None:
    ours, theirs = prometheus_client.CollectorRegistry(), prometheus_client.CollectorRegistry()
    mine = measures.Counters("things_total", "How many.", labels, registry=ours).of(*labels)
    family = prometheus_client.Counter("things_total", "How many.", labels, registry=theirs)
    library_metric = family.labels(*labels) if labels else family
    for _ in range(3):
        mine.inc()
        library_metric.inc()
    assert _lines(ours) == _lines(theirs)


def test_labels_have_a_counter_each() -> None:
    registry = prometheus_client.CollectorRegistry()
    family = measures.Counters("things_total", "How many.", ("kind",), registry=registry)
    family.of("a").inc()
    family.of("b").inc()
    family.of("a").inc()
    assert registry.get_sample_value("things_total", {"kind": "a"}) == 2
    assert registry.get_sample_value("things_total", {"kind": "b"}) == 1


def test_a_name_is_taken_once() -> None:
    registry = prometheus_client.CollectorRegistry()
    measures.Counters("things_total", "How many.", registry=registry)
    with pytest.raises(ValueError, match="things"):
        measures.Counters("things_total", "How many.", registry=registry)
