"""Arrivals and events of a workload document, drawn by a seed. Arrivals are made one by one, in bounded memory.

Every class of jobs, and every node that may fail, draws from a generator of its own. So adding a class changes no
arrival of the others.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.api import meta, pod
from drachma.simulate.timeline import durations, workloadspec
from drachma.simulate.timeline.events import Arrival, ClusterChange, DeviceFault, Event, JobShape, NodeOutage
from drachma.simulate.timeline.workloadspec import (
    At,
    Choice,
    Constant,
    Distribution,
    Exponential,
    Fixed,
    JobClass,
    LogNormal,
    PodCounts,
    Poisson,
    RandomFailures,
    ScheduledEvent,
    Uniform,
    WorkloadSpec,
)

Draw = Callable[[random.Random], float]
Decode = Callable[[Mapping[str, Any]], meta.Object]
ReadSpec = Callable[[Mapping[str, Any]], pod.PodSpec]

_SHORTEST: Final = 1e-6
"""Shortest distance of arrivals in seconds, so that time goes on."""
_SHORTEST_REPETITION: Final = 1.0
"""Shortest time between two repetitions of an outage, and mean time between two failures."""


Device = tuple[str, str]
"""Node and name of a device."""


def events(
    spec: WorkloadSpec,
    *,
    seed: int,
    nodes: Sequence[str],
    devices: Sequence[Device] = (),
    decode: Decode,
    read_spec: ReadSpec,
) -> Iterator[Event]:
    """Return an iterator over all events of a workload, in the order of their times.

    ``nodes`` and ``devices`` may fail. ``decode`` reads objects that events apply or remove, and ``read_spec`` pod
    templates. Raises InvalidValueError or DecodeError for values that are wrong, before the first event.
    """
    duration = durations.parse(spec.duration, title="spec.duration")
    streams: list[Iterable[Event]] = [
        _arrivals(each, f"spec.jobs[{number}]", duration, random.Random(f"{seed}/{each.name}"), read_spec)
        for number, each in enumerate(spec.jobs)
    ]
    streams.append(sorted(_scheduled(spec, nodes, devices, duration, decode), key=lambda event: event.time))
    if spec.failures is not None:
        draw = _failure_times(spec.failures, "spec.failures", duration)
        streams += [_node_outages(name, draw(random.Random(f"{seed}/node/{name}"))) for name in nodes]
    if spec.device_failures is not None:
        draw = _failure_times(spec.device_failures, "spec.deviceFailures", duration)
        streams += [_device_faults(each, draw(random.Random(f"{seed}/device/{'/'.join(each)}"))) for each in devices]
    return heapq.merge(*streams, key=lambda event: event.time)


def job_shape(job_class: JobClass, count: int, *, title: str, read_spec: ReadSpec) -> JobShape:
    """Return the shape of jobs of a class with a number of pods. Raises DecodeError for a bad template."""
    try:
        spec = read_spec(job_class.template)
    except errors.DecodeError as error:
        raise errors.DecodeError(f"{title}.template: {error}") from None
    spec = structs.replace(spec, priority=job_class.priority or spec.priority or 0)
    metadata = job_class.template.get("metadata") or {}
    labels = (metadata.get("labels") or {}) if isinstance(metadata, Mapping) else None
    if not isinstance(labels, Mapping):
        raise errors.DecodeError(f"{title}.template: metadata: expected an object with labels")
    return JobShape(
        spec=spec,
        count=count,
        labels={str(key): str(value) for key, value in labels.items()},
        namespace=job_class.namespace,
        queue=job_class.queue,
        is_gang=job_class.gang,
    )


def _arrivals(
    job_class: JobClass, title: str, duration: float, rng: random.Random, read_spec: ReadSpec
) -> Iterator[Arrival]:
    """Check a class at once, and return its arrivals."""
    runtime = distribution(job_class.runtime, title=f"{title}.runtime") if job_class.runtime is not None else None
    counts = job_class.pods if isinstance(job_class.pods, PodCounts) else PodCounts(values=(job_class.pods,))
    workloadspec.check_weights(counts.values, counts.weights, title=f"{title}.pods")
    shapes = [job_shape(job_class, count, title=title, read_spec=read_spec) for count in counts.values]
    times = _times(job_class, title, duration, rng)

    def draw() -> Iterator[Arrival]:
        for number, time in enumerate(times):
            shape = rng.choices(shapes, counts.weights or None)[0] if len(shapes) > 1 else shapes[0]
            yield Arrival(time, f"{job_class.name}-{number}", shape, runtime(rng) if runtime is not None else None)

    return draw()


def _times(job_class: JobClass, title: str, duration: float, rng: random.Random) -> Iterator[float]:
    process = job_class.arrivals
    match process:
        case At():
            times = [
                durations.parse(each, title=f"{title}.arrivals.times[{number}]")
                for number, each in enumerate(process.times)
            ]
            return iter(sorted(times))
        case Poisson() | Fixed():
            every = durations.parse(process.every, title=f"{title}.arrivals.every")
            if every < _SHORTEST:
                raise errors.InvalidValueError(f"{title}.arrivals.every {process.every!r}: must be above 0")
            all_times = (
                _poisson_times(every, rng)
                if isinstance(process, Poisson)
                else _fixed_times(process, every, durations.parse(process.first, title=f"{title}.arrivals.first"))
            )
            limited = itertools.takewhile(lambda time: time <= duration, all_times)
            return itertools.islice(limited, process.count)


def _poisson_times(every: float, rng: random.Random) -> Iterator[float]:
    time = 0.0
    while True:
        time += rng.expovariate(1 / every)
        yield time


def _fixed_times(process: Fixed, every: float, first: float) -> Iterator[float]:
    for number in itertools.count():
        for _ in range(process.batch):
            yield first + number * every


def distribution(spec: Distribution, *, title: str) -> Draw:
    """Return a function that draws seconds from a distribution. Raises InvalidValueError for values that are wrong."""
    match spec:
        case Constant():
            value = durations.parse(spec.value, title=f"{title}.value")
            return lambda rng: value
        case Uniform():
            least = durations.parse(spec.least, title=f"{title}.least")
            most = durations.parse(spec.most, title=f"{title}.most")
            if most < least:
                raise errors.InvalidValueError(f"{title}.most {spec.most!r}: must not be below least {spec.least!r}")
            return lambda rng: rng.uniform(least, most)
        case Exponential():
            mean = durations.parse(spec.mean, title=f"{title}.mean")
            return lambda rng: rng.expovariate(1 / mean) if mean else 0.0
        case LogNormal():
            median = durations.parse(spec.median, title=f"{title}.median")
            return lambda rng: rng.lognormvariate(math.log(median), spec.sigma) if median else 0.0
        case Choice():
            values = [
                durations.parse(each, title=f"{title}.values[{number}]") for number, each in enumerate(spec.values)
            ]
            workloadspec.check_weights(values, spec.weights, title=title)
            return lambda rng: rng.choices(values, spec.weights or None)[0]


def _scheduled(
    spec: WorkloadSpec, nodes: Sequence[str], devices: Sequence[Device], duration: float, decode: Decode
) -> Iterator[Event]:
    node_names, all_devices = frozenset(nodes), frozenset(devices)
    for number, event in enumerate(spec.events):
        title = f"spec.events[{number}]"
        time = durations.parse(event.at, title=f"{title}.at")
        names = event.fail or event.maintain
        for name in names:
            if name not in node_names:
                raise errors.InvalidValueError(f"{title}: there is no node {name!r}")
        failing = tuple(_device(each, title, all_devices) for each in event.fail_devices)
        if not names and not failing:
            yield ClusterChange(
                time, applied=tuple(map(decode, event.apply)), removed=tuple(map(decode, event.remove)), title=title
            )
            continue
        lasting = durations.parse(event.lasting, title=f"{title}.lasting") if event.lasting is not None else None
        for begin in _repetitions(event, title, time, duration):
            until = begin + lasting if lasting is not None else None
            if failing:
                yield DeviceFault(begin, failing, until)
            else:
                yield NodeOutage(begin, names, until, reason="failure" if event.fail else "maintenance")


def _repetitions(event: ScheduledEvent, title: str, first: float, duration: float) -> Iterator[float]:
    """Yield the times of an event that may happen again until the end of arrivals."""
    yield first
    if event.every is not None:
        every = durations.parse(event.every, title=f"{title}.every")
        lasting = durations.parse(event.lasting or 0.0, title=f"{title}.lasting")
        if every < max(lasting, _SHORTEST_REPETITION):
            raise errors.InvalidValueError(f"{title}.every {event.every!r}: must be at least 1s, and at least lasting")
        yield from itertools.takewhile(lambda time: time <= duration, itertools.count(first + every, every))


def _device(text: str, title: str, devices: frozenset[Device]) -> Device:
    node, _, name = text.partition("/")
    if (node, name) not in devices:
        raise errors.InvalidValueError(f"{title}.failDevices: there is no device {text!r}, expected node/device")
    return node, name


def _failure_times(
    failures: RandomFailures, title: str, duration: float
) -> Callable[[random.Random], Iterator[tuple[float, float]]]:
    """Check the fields at once, and return a function that draws the begin and end of each failure."""
    between = durations.parse(failures.mean_time_between, title=f"{title}.meanTimeBetween")
    repair = durations.parse(failures.mean_time_to_repair, title=f"{title}.meanTimeToRepair")
    if between < _SHORTEST_REPETITION:
        raise errors.InvalidValueError(
            f"{title}.meanTimeBetween {failures.mean_time_between!r}: must be at least {_SHORTEST_REPETITION:g}s"
        )

    def draw(rng: random.Random) -> Iterator[tuple[float, float]]:
        time = rng.expovariate(1 / between)
        while time <= duration:
            until = time + (rng.expovariate(1 / repair) if repair else 0.0)
            yield time, until
            time = until + rng.expovariate(1 / between)

    return draw


def _device_faults(device: Device, times: Iterable[tuple[float, float]]) -> Iterator[DeviceFault]:
    for time, until in times:
        yield DeviceFault(time, (device,), until)


def _node_outages(name: str, times: Iterable[tuple[float, float]]) -> Iterator[NodeOutage]:
    for time, until in times:
        yield NodeOutage(time, (name,), until)
