"""Report of a simulation: a value with all results, as a document, as lines of text, and as CSV."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from drachma.simulate.timeline import durations, loops
from drachma.simulate.timeline.diary import Diary
from drachma.simulate.timeline.timeline import Timeline

_MOST_LISTED: Final = 20


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class WaitRow(_Data, frozen=True, kw_only=True):
    """Waiting times of started jobs of one queue and priority, in seconds."""

    queue: str
    priority: int
    jobs: int
    p50: float
    p95: float
    p99: float
    most: float
    mean: float


class WaitingJob(_Data, frozen=True, kw_only=True):
    """Job that waits at the end."""

    job: str
    queue: str
    waited_seconds: float
    evictions: int
    has_started: bool
    reason: str


class EvictionPair(_Data, frozen=True, kw_only=True):
    """Job that evicted another, how often, and the running time that was lost."""

    preemptor: str
    victim: str
    count: int
    lost_pod_hours: float = 0.0
    lost_device_hours: float = 0.0


class Loop(_Data, frozen=True, kw_only=True):
    """Jobs that evict each other again and again."""

    jobs: tuple[str, ...]
    evictions: int
    settings: tuple[str, ...]
    """Fields that allow it. Changing one of them ends the loop."""


class Point(_Data, frozen=True, kw_only=True):
    """State at one time."""

    time: float
    used: dict[str, float]
    running: int
    waiting: int
    fragmentation: float | None = None


class ExplainedHours(_Data, frozen=True, kw_only=True):
    """State of the explained job for most of some hours."""

    begin_seconds: float
    end_seconds: float
    text: str


class ExplainedJob(_Data, frozen=True, kw_only=True):
    """One job, hour by hour."""

    job: str
    hours: tuple[ExplainedHours, ...]


class JobTimeline(_Data, frozen=True, kw_only=True):
    """Times of one job, in seconds."""

    job: str
    arrived: float
    started: float | None
    """None if it never started."""
    ended: float | None
    """None if it waits or runs at the end."""
    evictions: int


class GroupCost(_Data, frozen=True, kw_only=True):
    """Nodes of a node group over time, and their cost."""

    group: str
    mean_nodes: float
    node_hours: float
    price: float
    """Price of one node for an hour."""
    cost: float


class Report(_Data, frozen=True, kw_only=True):
    """Results of one simulation."""

    title: str
    seed: int
    simulated_seconds: float
    is_complete: bool
    """False if the simulation was interrupted."""
    arrived: int
    started: int
    completed: int
    waiting: int
    never_started: int
    utilisation: dict[str, float]
    """Used share of each resource, as the mean over time."""
    waits: tuple[WaitRow, ...]
    evictions: int
    lost_pod_hours: float
    """Running time of evicted pods, which have to start again."""
    lost_device_hours: float = 0.0
    """Running time of evicted pods, for each of their devices."""
    eviction_pairs: tuple[EvictionPair, ...]
    loops: tuple[Loop, ...]
    waiting_jobs: tuple[WaitingJob, ...]
    """Jobs that wait at the end, those that wait longest first."""
    series: tuple[Point, ...]
    longest_waits: tuple[JobTimeline, ...] = ()
    """Jobs that waited longest, by arrival."""
    explained: ExplainedJob | None = None
    node_groups: tuple[GroupCost, ...] = ()


def make(timeline: Timeline, *, title: str, seed: int, is_complete: bool = True, diary: Diary | None = None) -> Report:
    """Return the report of a simulation up to now."""
    measures = timeline.measures
    waiting_jobs = sorted((job for job in timeline.jobs.values() if job.waiting), key=lambda job: job.arrival.time)
    return Report(
        title=title,
        seed=seed,
        simulated_seconds=round(timeline.now, 3),
        is_complete=is_complete,
        arrived=measures.arrived,
        started=measures.started,
        completed=measures.completed,
        waiting=len(waiting_jobs),
        never_started=measures.arrived - measures.started,
        utilisation={name: round(share, 4) for name, share in measures.mean_shares().items()},
        waits=tuple(
            WaitRow(queue=queue, priority=priority, jobs=waits.jobs, **_rounded(waits._asdict()))
            for queue, priority, waits in measures.wait_percentiles()
        ),
        evictions=measures.evicted,
        lost_pod_hours=round(measures.lost_seconds / 3600, 2),
        lost_device_hours=round(measures.lost_device_seconds / 3600, 2),
        eviction_pairs=tuple(
            EvictionPair(
                preemptor=pair[0],
                victim=pair[1],
                count=count,
                lost_pod_hours=round(measures.pair_losses[pair][0] / 3600, 2),
                lost_device_hours=round(measures.pair_losses[pair][1] / 3600, 2),
            )
            for pair, count in measures.eviction_pairs.most_common(_MOST_LISTED)
        ),
        loops=tuple(
            Loop(jobs=loop.jobs, evictions=loop.evictions, settings=loop.settings)
            for loop in loops.find_loops(measures.repetitions, measures.evictions)
        ),
        waiting_jobs=tuple(
            WaitingJob(
                job=job.key,
                queue=job.arrival.shape.queue,
                waited_seconds=round(timeline.now - job.arrival.time, 3),
                evictions=job.evictions,
                has_started=job.started is not None,
                reason=job.reason,
            )
            for job in waiting_jobs[:_MOST_LISTED]
        ),
        series=tuple(
            Point(
                time=round(each.time, 3),
                used={name: round(share, 4) for name, share in each.used.items()},
                running=each.running,
                waiting=each.waiting,
                fragmentation=round(each.fragmentation, 4) if each.fragmentation is not None else None,
            )
            for each in measures.series.samples
        ),
        explained=None if diary is None else _explain(diary, timeline.now),
        longest_waits=tuple(
            JobTimeline(
                job=each.job,
                arrived=round(each.arrived, 3),
                started=None if each.started is None else round(each.started, 3),
                ended=None if each.ended is None else round(each.ended, 3),
                evictions=each.evictions,
            )
            for each in measures.longest_waits(timeline.jobs.values())
        ),
        node_groups=tuple(_costs(timeline)),
    )


def _costs(timeline: Timeline) -> Iterator[GroupCost]:
    for group in timeline.scaling.rules.groups if timeline.scaling is not None else ():
        seconds = timeline.measures.node_seconds.get(group.name, 0.0)
        yield GroupCost(
            group=group.name,
            mean_nodes=round(seconds / timeline.now, 2) if timeline.now else 0.0,
            node_hours=round(seconds / 3600, 2),
            price=group.price,
            cost=round(seconds / 3600 * group.price, 2),
        )


def _explain(diary: Diary, now: float) -> ExplainedJob:
    hours = tuple(
        ExplainedHours(begin_seconds=round(row.begin, 3), end_seconds=round(row.end, 3), text=row.text)
        for row in diary.rows(now)
    )
    return ExplainedJob(job=diary.key, hours=hours)


def _rounded(percentiles: dict[str, Any]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in percentiles.items() if name != "jobs"}


def to_document(report: Report | PolicySummary) -> dict[str, Any]:
    """Return a report or a summary as plain dicts, lists and scalars."""
    document: dict[str, Any] = msgspec.to_builtins(report)
    return document


def lines(report: Report) -> Iterator[str]:
    """Yield the lines that people read."""
    suffix = "" if report.is_complete else " (interrupted)"
    yield f"{report.title}, seed {report.seed}: simulated {durations.show(report.simulated_seconds)}{suffix}"
    yield f"{report.arrived:,} jobs arrived, {report.started:,} started, {report.completed:,} completed"
    used = ", ".join(f"{share:.1%} of {name}" for name, share in report.utilisation.items() if share)
    yield f"used on average: {used or 'nothing'}"
    if report.waits:
        yield ""
        yield f"{'queue':<24}{'priority':>9}{'jobs':>9}{'wait p50':>10}{'p95':>9}{'p99':>9}{'max':>9}"
        for row in report.waits:
            times = "".join(f"{durations.show(each):>9}" for each in (row.p95, row.p99, row.most))
            yield f"{row.queue:<24}{row.priority:>9}{row.jobs:>9,}{durations.show(row.p50):>10}{times}"
    if report.evictions:
        yield ""
        devices = f" and {report.lost_device_hours:,.1f} device hours" if report.lost_device_hours else ""
        yield f"{report.evictions:,} evictions, which lost {report.lost_pod_hours:,.1f} pod hours{devices}"
    if report.node_groups:
        yield ""
        yield f"{'node group':<24}{'mean nodes':>12}{'node hours':>12}{'price':>9}{'cost':>12}"
        for group in report.node_groups:
            yield (
                f"{group.group:<24}{group.mean_nodes:>12.1f}{group.node_hours:>12,.1f}{group.price:>9,g}"
                f"{group.cost:>12,.1f}"
            )
    for loop in report.loops:
        yield f"loop: {', '.join(loop.jobs)} evict each other ({loop.evictions} evictions)"
        yield from (f"  allowed by {setting}" for setting in loop.settings)
    if report.waiting_jobs:
        yield ""
        yield f"{report.waiting:,} jobs wait at the end, {report.never_started:,} have never started"
        for job in report.waiting_jobs[:5]:
            yield f"  {job.job} for {durations.show(job.waited_seconds)}: {job.reason or 'queued'}"


def explanation_lines(report: Report) -> Iterator[str]:
    """Yield the hours of the explained job, if there is one."""
    if report.explained is None:
        return
    yield ""
    yield f"{report.explained.job} ({report.title}, seed {report.seed}):"
    if not report.explained.hours:
        yield "  has not arrived"
    for hours in report.explained.hours:
        begin, end = durations.show(hours.begin_seconds), durations.show(hours.end_seconds)
        yield f"  {begin:>7} to {end:<7} {hours.text}"


class Spread(_Data, frozen=True, kw_only=True):
    """Mean of one figure over several seeds, with its least and most."""

    mean: float
    least: float
    most: float


class PolicySummary(_Data, frozen=True, kw_only=True):
    """Figures of one policy over several seeds."""

    title: str
    seeds: int
    completed: Spread
    utilisation: Spread
    """Used share of the resource that is used most, as the mean over time."""
    wait_p95: Spread
    """Largest 95th percentile of waiting times of a queue and priority, in seconds."""
    evictions: Spread
    lost_pod_hours: Spread
    waiting: Spread


def summarise(reports: Sequence[Report]) -> list[PolicySummary]:
    """Return one summary for each policy, in the order of the reports."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.title, []).append(report)
    return [
        PolicySummary(
            title=title,
            seeds=len(group),
            completed=_spread([each.completed for each in group]),
            utilisation=_spread([busiest_share(each) for each in group]),
            wait_p95=_spread([longest_p95(each) for each in group]),
            evictions=_spread([each.evictions for each in group]),
            lost_pod_hours=_spread([each.lost_pod_hours for each in group]),
            waiting=_spread([each.waiting for each in group]),
        )
        for title, group in groups.items()
    ]


def _spread(values: Sequence[float]) -> Spread:
    return Spread(mean=round(statistics.fmean(values), 4), least=min(values), most=max(values))


def busiest_share(report: Report) -> float:
    """Return the used share of the resource that is used most."""
    return max(report.utilisation.values(), default=0.0)


def longest_p95(report: Report) -> float:
    """Return the largest 95th percentile of waiting times."""
    return max((row.p95 for row in report.waits), default=0.0)


def comparison_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a table with one line for each report, and below it means with spread if there are several seeds."""
    yield from _run_lines(reports)
    if len({report.seed for report in reports}) < 2:
        return
    yield ""
    yield f"{'mean (least to most)':<20}{'completed':>26}{'mean use':>26}{'wait p95':>28}{'evictions':>20}"
    for each in summarise(reports):
        yield (
            f"{each.title:<20}{show_spread(each.completed, '{:,.0f}'.format):>26}"
            f"{show_spread(each.utilisation, '{:.1%}'.format):>26}{show_spread(each.wait_p95, durations.show):>28}"
            f"{show_spread(each.evictions, '{:,.0f}'.format):>20}"
        )


def show_spread(spread: Spread, show: Callable[[float], str]) -> str:
    """Return a mean with its least and most as people read it."""
    return f"{show(spread.mean)} ({show(spread.least)} to {show(spread.most)})"


def _run_lines(reports: Sequence[Report]) -> Iterator[str]:
    yield f"{'':<28}{'started':>9}{'completed':>11}{'mean use':>10}{'wait p95':>10}{'evictions':>11}{'waiting':>9}"
    for report in reports:
        yield (
            f"{report.title + f', seed {report.seed}':<28}{report.started:>9,}{report.completed:>11,}"
            f"{busiest_share(report):>10.1%}{durations.show(longest_p95(report)):>10}{report.evictions:>11,}{report.waiting:>9,}"
        )


def to_csv(reports: Sequence[Report]) -> str:
    """Return the time series of reports as CSV."""
    resources = sorted({name for report in reports for point in report.series for name in point.used})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["title", "seed", "seconds", "running", "waiting", "fragmentation", *resources])
    for report in reports:
        for point in report.series:
            fragmentation = "" if point.fragmentation is None else point.fragmentation
            shares = [point.used.get(name, 0) for name in resources]
            writer.writerow(
                [report.title, report.seed, point.time, point.running, point.waiting, fragmentation, *shares]
            )
    return text.getvalue()
