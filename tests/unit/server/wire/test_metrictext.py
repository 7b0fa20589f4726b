"""Prometheus' own client would write the same samples."""

import prometheus_client
import pytest
from prometheus_client import core, exposition, parser
from prometheus_client import registry as collecting

from drachma.server.histogram import Histogram
from drachma.server.wire import metrics

LABELS = ("verb", "resource")
ROWS = (("GET", "pods"), ('a"b', "c\\d"), ("line\nbreak", "ü"), ("", ""))


class _One(collecting.Collector):
    def __init__(self, family: core.Metric) -> None:
        self._family = family

    def collect(self) -> list[core.Metric]:
        return [self._family]


def _parse(text: str) -> list[core.Metric]:
    return list(parser.text_string_to_metric_families(text))


def _client_text(family: core.Metric) -> str:
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_One(family))
    return exposition.generate_latest(registry).decode()


def test_histograms() -> None:
    family = core.HistogramMetricFamily("size_bytes", "Sizes.", labels=LABELS)
    histograms = []
    for number, labels in enumerate(ROWS):
        histogram = Histogram((0.005, 1.0, 1_000_000_000.0))
        for value in range(number):
            histogram.observe(value * 0.7)
        histograms.append((labels, histogram))
        family.add_metric(labels, histogram.buckets(), histogram.sum)
    text = "".join(metrics.write_histograms("size_bytes", "Sizes.", LABELS, histograms))
    assert _parse(text) == _parse(_client_text(family))


@pytest.mark.parametrize("value", [0, 3, 2.5, 1e9, 12345678901234])
def test_gauges_and_counters(value: float) -> None:
    gauge = core.GaugeMetricFamily("level", "Level.", labels=LABELS)
    counter = core.CounterMetricFamily("calls", "Calls.", labels=LABELS)
    for labels in ROWS:
        gauge.add_metric(labels, value)
        counter.add_metric(labels, value)
    rows = [(labels, value) for labels in ROWS]
    assert _parse("".join(metrics.write_values("level", "gauge", "Level.", LABELS, rows))) == _parse(
        _client_text(gauge)
    )
    assert _parse("".join(metrics.write_values("calls_total", "counter", "Calls.", LABELS, rows))) == _parse(
        _client_text(counter)
    )
