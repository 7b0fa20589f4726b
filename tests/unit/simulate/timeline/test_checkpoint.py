"""Checkpoints: a simulation that goes on from one has the history of a simulation that was not interrupted."""

import random
from collections.abc import Iterator

import pytest

from drachma import errors
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline import checkpoint, report
from drachma.simulate.timeline.events import Arrival, DeviceFault, Event, EventStream, JobShape, NodeOutage
from drachma.simulate.timeline.jobrun import JobRun
from tests.unit.simulate import objects as clusters
from tests.unit.simulate.timeline.histories import EPOCH, job, queues, shape

JOBS = 30
EVERY = 10


def events(seed: int) -> Iterator[Event]:
    """Yield the same events every time: jobs with and without claims and queues, a failed node and a failed device."""
    rng = random.Random(seed)
    claims = JobShape(spec=clusters.gpu_pod("x").spec)
    shapes = [shape(1), shape(2, priority=5), shape(1, queue="team"), shape(2, queue="other"), claims]
    for number in range(JOBS):
        time = 3.0 * number
        if number == 12:
            yield NodeOutage(time, ("a",), time + 50)
        if number == 18:
            yield DeviceFault(time, (("b", "gpu-0"),), time + 40)
        yield Arrival(time, f"j{number}", rng.choice(shapes), rng.uniform(5, 60))


def base(lines: list[str]) -> checkpoint.Base:
    def note(what: str, time: float, run: JobRun, where: str) -> None:
        lines.append(f"{time:g} {what} {run.key} {where}")

    objects = [clusters.CLASS, clusters.template("one")]
    for name in ("a", "b"):
        objects += clusters.gpu_node(name, 2)
    return checkpoint.Base(
        objects=tuple(objects),
        queueing=tuple(queues("team", "other", cpu=3, cohort="all", reclaimWithinCohort="Any")),
        epoch=EPOCH,
        make_cluster=lambda state, seed: Simulation(state, seed=seed),
        seed=7,
        observer=note,
    )


def run(seed: int, *, is_killed: bool) -> tuple[list[str], report.Report]:
    """Run with a checkpoint after every few arrivals. A killed run starts each part from a file and the events."""
    lines: list[str] = []
    inputs = base(lines)
    stream, timeline = EventStream(events(seed)), checkpoint.begin(inputs)
    number = 0
    while timeline.run(stream, pause_after=(number + 1) * EVERY):
        number += 1
        saved = checkpoint.save(timeline, stream, number=number, inputs="test")
        past = checkpoint.past_of(timeline)
        if is_killed:
            saved = checkpoint.decode(checkpoint.encode(saved), title="file", inputs="test")
            stream, past = checkpoint.skip(events(seed), saved)
        timeline = checkpoint.resume(saved, inputs, past)
    assert number == JOBS // EVERY
    return lines, report.make(timeline, title="t", seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_resumed_run_equals_one_that_was_not_interrupted(seed: int) -> None:
    lines, made = run(seed, is_killed=False)
    again, remade = run(seed, is_killed=True)
    assert lines == again
    assert made == remade
    assert (made.arrived, made.completed) == (JOBS, JOBS)
    assert any(" evict " in line for line in lines)


def test_nothing_is_lost_between_checkpoints() -> None:
    lines: list[str] = []
    without = checkpoint.begin(base(lines))
    without.run(events(1))
    whole = report.make(without, title="t", seed=1)
    _, made = run(1, is_killed=True)
    assert (made.arrived, made.started, made.completed) == (whole.arrived, whole.started, whole.completed)


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(b"nonsense", "file: is not a checkpoint", id="no-checkpoint"),
        pytest.param(None, "file: is a checkpoint of test, not of other inputs", id="other-inputs"),
    ],
)
def test_other_files_are_refused(content: bytes | None, want: str) -> None:
    timeline = checkpoint.begin(base([]))
    saved = checkpoint.save(timeline, EventStream(()), number=1, inputs="test")
    with pytest.raises(errors.InvalidValueError, match=want):
        checkpoint.decode(content or checkpoint.encode(saved), title="file", inputs="other inputs")


def test_a_shorter_workload_is_refused() -> None:
    timeline = checkpoint.begin(base([]))
    stream = EventStream(events(1))
    timeline.run(stream, pause_after=5)
    saved = checkpoint.save(timeline, stream, number=1, inputs="test")
    with pytest.raises(errors.InvalidValueError, match="it is after 5 events, and the workload has 0"):
        checkpoint.skip((), saved)
    with pytest.raises(errors.InvalidValueError, match="is not in the workload"):
        checkpoint.resume(saved, base([]), checkpoint.Past({}, checkpoint.past_of(timeline).shape_counts))


def test_a_cluster_without_queues_needs_none() -> None:
    bare = base([])._replace(queueing=())
    timeline = checkpoint.begin(bare)
    stream = EventStream([job(0, "one", shape(1), 10.0), job(5, "two", shape(1), 10.0)])
    assert timeline.run(stream, pause_after=1)
    saved = checkpoint.save(timeline, stream, number=1, inputs="test")
    resumed = checkpoint.resume(saved, bare, checkpoint.past_of(timeline))
    assert not resumed.run(stream)
    assert (resumed.measures.completed, resumed.now) == (2, 15.0)
    assert ClusterState.of(bare.objects).objects, "the inputs stay as they are"
