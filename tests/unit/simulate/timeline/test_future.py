"""Futures of existing clusters: when a job starts, and what a change would do."""

import random
from datetime import UTC, datetime, timedelta

from msgspec import structs

from drachma import testing
from drachma.api import job as job_kind
from drachma.api import meta, pod
from drachma.queueing.kinds import workload
from drachma.simulate import ClusterState
from drachma.simulate.timeline import future, whatif
from drachma.simulate.timeline.future import Assumption, ClusterNow
from tests.unit.simulate.timeline.histories import job, node, queues, shape

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def bound(name: str, cpu: int, on: str, *, stated: str = "", started: float = 0.0) -> pod.Pod:
    built = testing.pod(name).container("c", requests={"cpu": str(cpu)}).build()
    annotations = {future.DURATION: stated} if stated else {}
    return structs.replace(
        built,
        metadata=structs.replace(built.metadata, uid=name, annotations=annotations),
        spec=structs.replace(built.spec, node_name=on),
        status=pod.PodStatus(start_time=NOW - timedelta(seconds=started)),
    )


def waiting(name: str, cpu: int) -> pod.Pod:
    return testing.pod(name).container("c", requests={"cpu": str(cpu)}).build()


def cluster(*objects: meta.Object, queueing: tuple[meta.Object, ...] = ()) -> ClusterNow:
    return ClusterNow(ClusterState.of(objects), queueing, NOW)


def queued_workload(name: str, cpu: int, queue: str) -> workload.Workload:
    template = job_kind.PodTemplateSpec(spec=testing.pod("x").container("c", requests={"cpu": str(cpu)}).build().spec)
    return workload.Workload(
        metadata=meta.ObjectMeta(name=name, namespace="default", uid=name),
        spec=workload.WorkloadSpec(
            pod_sets=(workload.PodSet(name="main", count=1, template=template),), queue_name=queue
        ),
    )


def ask(
    current: ClusterNow, key: str = "default/new", *, assumed: float | None = None, **about: int
) -> future.Forecast:
    new = job(0, "new", shape(about.get("cpu", 4)), None) if key == "default/new" else None
    return future.forecast(current, new, key, assumption=Assumption(assumed), samples=20, horizon=1e6, seed=1)


def test_a_job_that_fits_starts_now() -> None:
    forecast = ask(cluster(node("a")))
    assert (forecast.node, forecast.percentile(50), forecast.reason) == ("a", 0.0, "")


def test_a_job_starts_when_a_stated_duration_has_passed() -> None:
    forecast = ask(cluster(node("a"), bound("busy", 2, "a", stated="10m", started=200)))
    assert forecast.node == ""
    assert forecast.likely_range() == (400.0, 400.0)
    assert "Insufficient cpu" in forecast.reason


def test_assumed_durations_give_a_range() -> None:
    forecast = ask(cluster(node("a"), bound("busy", 2, "a")), assumed=1000.0)
    median, (low, high) = forecast.percentile(50), forecast.likely_range()
    assert low is not None
    assert median is not None
    assert high is not None
    assert 0 < low < median < high
    assert high == forecast.starts[18], "one start more is beyond it in 2 of 21 cases"
    assert 100 < median < 3000


def test_a_history_gives_the_rest_of_running_times() -> None:
    current = cluster(node("a"), bound("busy", 2, "a", started=200))
    history = Assumption(history=(100.0, 300.0, 500.0))
    forecast = future.forecast(
        current, job(0, "new", shape(4), None), "default/new", assumption=history, samples=20, horizon=1e6, seed=1
    )
    assert set(forecast.starts) == {100.0, 300.0}
    longest = cluster(node("a"), bound("busy", 2, "a", started=600))
    later = future.forecast(
        longest, job(0, "new", shape(4), None), "default/new", assumption=history, samples=3, horizon=1e6, seed=1
    )
    assert set(later.starts) == {600.0}, "it runs for as long again"


def test_without_a_duration_a_job_never_starts() -> None:
    forecast = ask(cluster(node("a"), bound("busy", 2, "a")))
    assert (forecast.starts, forecast.percentile(50)) == ((), None)


def test_pods_that_wait_already_come_first() -> None:
    current = cluster(node("a"), bound("busy", 4, "a", stated="100s"), waiting("earlier", 4))
    assert ask(current, "default/earlier").percentile(50) == 100.0
    assert ask(current).percentile(50) is None, "the earlier pod runs for ever"


def test_all_starts_are_those_of_each_question() -> None:
    current = cluster(node("a"), bound("busy", 4, "a"), waiting("first", 2), waiting("second", 4), waiting("third", 1))
    forecasts = future.forecast_all(current, assumption=Assumption(1000.0), samples=20, horizon=1e6, seed=1)
    assert list(forecasts) == ["default/first", "default/second", "default/third"]
    for key, forecast in forecasts.items():
        assert forecast == ask(current, key, assumed=1000.0)


def test_a_future_ends_when_the_watched_jobs_have_started() -> None:
    current = cluster(node("a"), bound("busy", 4, "a"), waiting("first", 2), waiting("never", 40))
    assumption = Assumption(1000.0)
    every = future.forecast_all(current, assumption=assumption, samples=5, horizon=1e6, seed=1)
    some = future.forecast_all(
        current, assumption=assumption, samples=5, horizon=1e6, seed=1, watched={"default/first", "default/absent"}
    )
    assert some == {"default/first": every["default/first"]}


def test_pods_of_one_apply_tell_no_rate_of_arrivals() -> None:
    def expected(span: float, count: int) -> int:
        created = [NOW - timedelta(seconds=span * (place + 1) / count) for place in range(count)]
        pods = [
            structs.replace(each, metadata=structs.replace(each.metadata, creation_timestamp=at))
            for each, at in ((waiting(f"p{place}", 1), at) for place, at in enumerate(created))
        ]
        prospect = future.Prospect(cluster(node("a"), *pods))
        return sum(1 for _ in prospect.future(Assumption(1000.0), random.Random(1)).expected)

    assert expected(span=5.0, count=30) == 0
    assert expected(span=3600.0, count=30) == 300
    assert expected(span=5.0, count=250) == 300, "so many are a stream, however fast"


def test_more_nodes_start_what_waits() -> None:
    current = cluster(node("a"), bound("busy", 4, "a"), waiting("w", 4))
    difference = whatif.compare(current, [node("b")])
    assert difference.starts == {"default/w": ("b",)}
    assert (difference.waits, difference.evicted, difference.still_waiting) == ({}, (), {})


def test_a_removed_node_moves_or_stops_its_pods() -> None:
    current = cluster(node("a"), node("b", cpu=2), bound("large", 3, "a"), bound("small", 1, "a"))
    difference = whatif.compare(current, (), removed_nodes=["a"])
    assert difference.moves == {"default/small": (("a",), ("b",))}
    assert list(difference.waits) == ["default/large"]
    assert difference.evicted == ("default/large", "default/small")


def test_a_cordoned_node_is_drained() -> None:
    before = node("a")
    assert isinstance(before, type(testing.node("x").build()))
    cordoned = structs.replace(before, spec=structs.replace(before.spec, unschedulable=True))
    difference = whatif.compare(cluster(before, bound("p", 1, "a")), [cordoned])
    assert list(difference.waits) == ["default/p"]


def test_more_quota_admits_what_is_queued() -> None:
    queued = job(0, "q", shape(4, queue="team"), None)
    current = cluster(node("a", cpu=64), queueing=tuple(queues("team", cpu=2)))
    forecast = future.forecast(current, queued, "default/q", assumption=Assumption(), samples=1, horizon=10.0, seed=0)
    assert forecast.starts == ()
    more = cluster(node("a", cpu=64), queueing=tuple(queues("team", cpu=4)))
    assert (
        future.forecast(more, queued, "default/q", assumption=Assumption(), samples=1, horizon=10.0, seed=0).node == "a"
    )
