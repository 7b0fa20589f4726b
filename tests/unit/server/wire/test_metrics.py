"""The metrics that Prometheus reads are those that were counted."""

from prometheus_client import parser

from drachma.server.wire import metrics

GET = metrics.Labels("GET", "", "resource.k8s.io", "v1", "resourceclaims", "", "resource")
DRY_RUN = GET._replace(verb="POST", dry_run="All", scope="namespace")
CREATE = DRY_RUN._replace(dry_run="")
WATCH = GET._replace(verb="WATCH", scope="namespace")


def samples(counted: metrics.Metrics, name: str, **labels: str) -> list[float]:
    """The values of all samples of this name that have these labels."""
    families = parser.text_string_to_metric_families(counted.read().write().decode())
    return [
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def test_durations_fall_into_buckets_by_their_upper_bound() -> None:
    counted = metrics.Metrics()
    for seconds in (0.001, 0.005, 0.03, 100.0):
        counted.answered(GET, code=200, seconds=seconds, size=10)
    name = "apiserver_request_duration_seconds"
    got = {bound: samples(counted, f"{name}_bucket", le=bound) for bound in ("0.005", "0.025", "0.05", "60.0", "+Inf")}
    assert got == {"0.005": [2], "0.025": [2], "0.05": [3], "60.0": [3], "+Inf": [4]}
    assert samples(counted, f"{name}_count") == [4]
    assert samples(counted, f"{name}_sum") == [0.001 + 0.005 + 0.03 + 100.0]


def test_requests_are_counted_by_code() -> None:
    counted = metrics.Metrics()
    for code in (200, 200, 404):
        counted.answered(GET, code=code, seconds=0.001, size=10)
    assert samples(counted, "apiserver_request_total", code="200") == [2]
    assert samples(counted, "apiserver_request_total", code="404", verb="GET", component="apiserver") == [1]


def test_sizes_do_not_tell_dry_runs_apart() -> None:
    counted = metrics.Metrics()
    counted.answered(CREATE, code=201, seconds=0.001, size=900)
    counted.answered(DRY_RUN, code=201, seconds=0.001, size=1100)
    assert samples(counted, "apiserver_response_sizes_count", verb="POST") == [2]
    assert samples(counted, "apiserver_response_sizes_bucket", le="1000.0") == [1]
    assert samples(counted, "apiserver_request_total", dry_run="All") == [1]


def test_watches_count_while_open_and_their_bytes_afterwards() -> None:
    counted = metrics.Metrics()
    counted.watch_started(WATCH)
    counted.watch_started(WATCH)
    assert samples(counted, "apiserver_longrunning_requests", verb="WATCH") == [2]
    counted.watch_finished(WATCH, code=200, size=1000)
    assert samples(counted, "apiserver_longrunning_requests") == [1]
    assert samples(counted, "apiserver_watch_bytes_total", resource="resourceclaims") == [1000]
    assert samples(counted, "apiserver_request_total", verb="WATCH") == [1]
    assert samples(counted, "apiserver_request_duration_seconds_count") == []


def test_requests_in_flight_by_kind() -> None:
    counted = metrics.Metrics()
    counted.concurrency_gauge("GET").value += 2
    counted.concurrency_gauge("PATCH").value += 1
    assert samples(counted, "apiserver_current_inflight_requests", request_kind="readOnly") == [2]
    assert samples(counted, "apiserver_current_inflight_requests", request_kind="mutating") == [1]


def test_a_reading_keeps_the_values_of_its_moment() -> None:
    counted = metrics.Metrics()
    counted.answered(GET, code=200, seconds=0.001, size=10)
    reading = counted.read()
    counted.answered(GET, code=200, seconds=0.001, size=10)
    families = parser.text_string_to_metric_families(reading.write().decode())
    counts = [sample.value for family in families for sample in family.samples if sample.name.endswith("_count")]
    assert counts == [1, 1]
