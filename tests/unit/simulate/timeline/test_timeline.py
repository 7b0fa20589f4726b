"""Timelines: waiting, preemption, outages, gangs and quota in virtual time."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import errors
from drachma.simulate.timeline import loops, report, waitingline
from drachma.simulate.timeline.events import ClusterChange, Event, JobShape, NodeOutage
from tests.unit.simulate import objects as clusters
from tests.unit.simulate.timeline.histories import History, job, node, queues, shape


def test_jobs_wait_for_room_and_start_in_the_order_of_their_arrival() -> None:
    large = shape(4)
    history = History([node("a")])
    assert history.run([job(0, "one", large), job(1, "two", large), job(2, "three", large)]) == [
        "0 start one on a",
        "10 end one on a",
        "10 start two on a",
        "20 end two on a",
        "20 start three on a",
        "30 end three on a",
    ]
    ((queue, priority, waits),) = history.timeline.measures.wait_percentiles()
    assert (queue, priority, waits.jobs, waits.p50, waits.most) == ("default", 0, 3, 9.0, 18.0)
    assert history.timeline.measures.mean_shares()["cpu"] == 1.0


def test_a_small_job_starts_before_a_large_one_that_does_not_fit() -> None:
    lines = History([node("a")]).run([job(0, "half", shape(2)), job(1, "whole", shape(4)), job(2, "small", shape(1))])
    assert [line for line in lines if "start" in line] == [
        "0 start half on a",
        "2 start small on a",
        "12 start whole on a",
    ]


def test_a_more_important_job_preempts_and_the_victim_starts_again() -> None:
    history = History([node("a")])
    lines = history.run([job(0, "low", shape(4)), job(4, "high", shape(4, priority=5))])
    assert lines == [
        "0 start low on a",
        "4 evict low on a",
        "4 start high on a",
        "14 end high on a",
        "14 start low on a",
        "24 end low on a",
    ]
    measures = history.timeline.measures
    assert (measures.evicted, measures.lost_seconds, measures.completed) == (1, 4.0, 2)
    assert measures.eviction_pairs == {("default/high", "default/low"): 1}


def test_pods_of_a_failed_node_start_again_elsewhere_or_after_the_repair() -> None:
    history = History([node("a")])
    lines = history.run([job(0, "one", shape(4)), NodeOutage(5, ("a",), 8)])
    assert lines == ["0 start one on a", "5 evict one on a", "8 start one on a", "18 end one on a"]


def test_a_gang_starts_whole_or_not_at_all() -> None:
    pair = shape(4, count=2, is_gang=True)
    history = History([node("a"), node("b")])
    lines = history.run([job(0, "one", shape(1)), job(1, "pair", pair)])
    starts = [line.split(" on ")[0] for line in lines if "start" in line]
    assert starts == ["0 start one", "10 start pair", "10 start pair"]


def test_pods_of_an_ordinary_job_start_one_by_one() -> None:
    lines = History([node("a")]).run([job(0, "wide", shape(4, count=2))])
    assert lines == ["0 start wide on a", "10 end wide on a", "10 start wide on a", "20 end wide on a"]


def test_claims_are_allocated_and_released() -> None:
    kind = JobShape(spec=clusters.gpu_pod("x").spec)
    objects = [*clusters.gpu_node("a", 1), clusters.CLASS, clusters.template("one")]
    history = History(objects)
    lines = history.run([job(0, "one", kind), job(1, "two", kind)])
    assert [line for line in lines if "start" in line] == ["0 start one on a", "10 start two on a"]
    assert history.timeline.measures.mean_shares()["devices"] == 1.0
    assert history.timeline.cluster.snapshot.claims.get("default", "one-0-gpu-simulated") is None


def test_a_change_adds_nodes_that_waiting_jobs_use() -> None:
    history = History([node("a", cpu=1)])
    lines = history.run([job(0, "one", shape(4)), ClusterChange(7, applied=(node("b"),))])
    assert lines == ["7 start one on b", "17 end one on b"]


def test_quota_admits_one_after_the_other() -> None:
    queued = shape(4, queue="team")
    history = History([node("a", cpu=64)], queueing=queues("team"))
    lines = history.run([job(0, "one", queued), job(1, "two", queued)])
    assert lines == ["0 start one on a", "10 end one on a", "10 start two on a", "20 end two on a"]


def test_a_job_of_a_missing_queue_waits_with_the_reason() -> None:
    history = History([node("a")], queueing=queues("team"))
    history.run([job(0, "lost", shape(1, queue="nowhere"))])
    (waiting,) = report.make(history.timeline, title="t", seed=0).waiting_jobs
    assert "there is no local queue nowhere" in waiting.reason
    assert report.make(history.timeline, title="t", seed=0).never_started == 1


def test_an_owner_reclaims_quota_that_another_queue_borrows() -> None:
    queueing = queues("owner", "borrower", cohort="all", reclaimWithinCohort="Any")
    history = History([node("a", cpu=8)], queueing=queueing)
    lines = history.run(
        [job(0, "b", shape(8, queue="borrower"), 100), job(5, "o", shape(4, queue="owner"), 20)], until=60
    )
    assert lines[:3] == ["0 start b on a", "5 evict b on a", "5 start o on a"]
    (pair,) = report.make(history.timeline, title="t", seed=0).eviction_pairs
    assert (pair.preemptor, pair.victim) == ("default/o", "default/b")
    assert history.timeline.measures.evictions[0].setting == ("ClusterQueue owner: spec.preemption.reclaimWithinCohort")
    assert not report.make(history.timeline, title="t", seed=0).loops


def test_time_must_not_go_backwards() -> None:
    with pytest.raises(errors.InvalidValueError, match=r"job default/two: its time 1 is before 5"):
        History([node("a")]).run([job(5, "one", shape()), job(1, "two", shape())])


def test_names_of_running_jobs_are_unique() -> None:
    with pytest.raises(errors.InvalidValueError, match=r"job default/one: a job of this name waits or runs"):
        History([node("a")]).run([job(0, "one", shape()), job(1, "one", shape())])


def test_loops_are_found_and_single_preemptions_are_not() -> None:
    assert loops.find_loops({("a", "b"): 1, ("c", "b"): 2}, []) == []
    assert loops.find_loops({("a", "b"): 1, ("b", "a"): 1}, []) == []
    (loop,) = loops.find_loops({("a", "b"): 2, ("b", "c"): 2, ("c", "a"): 2, ("x", "a"): 2}, [])
    assert (loop.jobs, loop.evictions) == (("a", "b", "c"), 6)


def test_several_pods_of_a_job_that_go_at_once_are_no_loop() -> None:
    history = History([node("a"), node("b")])
    events = [job(0, "low", shape(2, count=4), 100.0), job(10, "high", shape(4, count=2, priority=5), 10.0)]
    history.run(events)
    assert history.timeline.measures.eviction_pairs["default/high", "default/low"] == 4
    assert not report.make(history.timeline, title="t", seed=0).loops


def test_a_victim_that_gets_its_room_back_each_time_is_a_loop() -> None:
    (loop,) = loops.find_loops({("a", "b"): 3}, [])
    assert (loop.jobs, loop.evictions) == (("a", "b"), 3)


KINDS = [shape(1), shape(2), shape(3), shape(1, priority=1), shape(4, priority=2)]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(1, 20)), max_size=25))
def test_a_history_equals_that_of_trying_every_pod_again(plans: list[tuple[int, int, int]]) -> None:
    arrivals = [
        job(float(time), f"j{number}", KINDS[kind], float(duration))
        for number, (time, kind, duration) in enumerate(sorted(plans))
    ]
    lines = History([node("a", cpu=5)]).run(arrivals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waitingline.WaitingLine, "_has_local", lambda _line, _shape: False)
        assert History([node("a", cpu=5)]).run(arrivals) == lines


@pytest.mark.parametrize("is_gang", [pytest.param(False, id="pods"), pytest.param(True, id="gangs")])
def test_every_job_of_a_very_long_line_starts(is_gang: bool) -> None:
    kinds = [shape(1, count=2, is_gang=is_gang), shape(2, count=2, is_gang=is_gang)]
    arrivals = [job(float(number), f"j{number}", kinds[number % 2], 200.0) for number in range(60)]
    history = History([node("a", cpu=4)])
    lines = history.run(arrivals)
    assert history.timeline.measures.completed == 60
    assert len({line.split(" ")[2] for line in lines if " start " in line}) == 60
    assert history.timeline.line.jobs() == []


def test_a_pod_is_tried_again_after_minutes_and_then_comes_after_pods_that_were_tried_later() -> None:
    whole = shape(4)
    arrivals = [job(0, "first", whole, 640.0), job(10, "early", whole), job(50, "late", whole)]
    starts = [line for line in History([node("a")]).run(arrivals) if " start " in line]
    # At 640, the last attempts were at 610 and 350.
    assert starts == ["0 start first on a", "640 start late on a", "650 start early on a"]


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_a_history_uses_no_more_than_there_is_and_loses_no_job(seed: int) -> None:
    rng = random.Random(seed)
    times = sorted(rng.uniform(0, 60) for _ in range(25))
    arrivals = [job(time, f"j{number}", rng.choice(KINDS), rng.uniform(1, 20)) for number, time in enumerate(times)]
    nodes = [node("a"), node("b", cpu=6)]
    outage: list[Event] = [NodeOutage(30.0, ("b",), 40.0)]
    events = sorted([*arrivals, *outage], key=lambda event: event.time)
    history = History(nodes)
    first = history.run(events)
    assert history.timeline.measures.completed == len(arrivals)
    assert all(share <= 1 for sample in history.timeline.measures.series.samples for share in sample.used.values())
    assert history.timeline.measures.running_pods == history.timeline.measures.waiting_pods == 0
    assert History(nodes).run(events) == first


def test_pods_that_leave_a_failed_node_make_no_room_there() -> None:
    with_gpu = JobShape(spec=clusters.gpu_pod("x", cpu="8").spec)
    history = History([clusters.CLASS, clusters.template("one"), *clusters.gpu_node("a", 1)])
    events: list[Event] = [job(0, "one", with_gpu), job(1, "two", shape(8)), NodeOutage(5, ("a",), 50)]
    lines = history.run(events)
    assert lines[:2] == ["0 start one on a", "5 evict one on a"]
    assert all(float(line.split()[0]) >= 50 for line in lines[2:])
