"""What pods use, as the kubelet tells it: the summary of ``/stats/summary``, and metrics of ``/metrics/resource``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.node.containerstate import Running
from drachma.node.podworker import PodWorker
from drachma.node.runtimes.protocol import Usage

_NANOS: Final = 10**9
_SHORTEST_LOOK: Final = 1.0
"""Seconds between two looks at a container that tell how much it uses."""


class _Figure(NamedTuple):
    """What a container uses."""

    namespace: str
    pod: str
    uid: str
    container: str
    since: dt.datetime
    usage: Usage


class Rates:
    """How much of the processor containers use, from what they had used when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, dt.datetime], tuple[dt.datetime, float, float]] = {}

    def of(self, figures: Iterable[_Figure], *, now: dt.datetime) -> dict[tuple[str, str], float]:
        """The processors that each container uses, by uid and name; those of a first look are since it began."""
        rates: dict[tuple[str, str], float] = {}
        seen: dict[tuple[str, str, dt.datetime], tuple[dt.datetime, float, float]] = {}
        for each in figures:
            key = each.uid, each.container, each.since
            then, used, rate = self._seen.get(key, (each.since, 0.0, 0.0))
            seconds = (now - then).total_seconds()
            if seconds >= _SHORTEST_LOOK:
                then, used, rate = now, each.usage.cpu_seconds, (each.usage.cpu_seconds - used) / seconds
            seen[key] = then, used, rate
            rates[each.uid, each.container] = max(rate, 0.0)
        self._seen = seen
        return rates


def summary(node: str, workers: Iterable[PodWorker], rates: Rates, *, now: dt.datetime) -> dict[str, Any]:
    """The figures of a node and its pods."""
    figures = list(_figures(workers))
    used = rates.of(figures, now=now)
    pods: dict[str, dict[str, Any]] = {}
    for each in figures:
        reference = {"name": each.pod, "namespace": each.namespace, "uid": each.uid}
        pods.setdefault(each.uid, {"podRef": reference, "containers": []})["containers"].append(
            {
                "name": each.container,
                "startTime": meta.time_text(each.since),
                **_usage(each.usage, used[each.uid, each.container], now=now),
            }
        )
    for uid, content in pods.items():
        own = [each for each in figures if each.uid == uid]
        content.update(_usage(_sum(own), sum(used[uid, each.container] for each in own), now=now))
    whole = _usage(_sum(figures), sum(used.values()), now=now)
    return {"node": {"nodeName": node, **whole}, "pods": list(pods.values())}


def resource_metrics(workers: Iterable[PodWorker], *, now: dt.datetime) -> str:
    """The same as metrics, each with the time at which it was taken."""
    figures = list(_figures(workers))
    stamp = int(now.timestamp() * 1000)
    by_pod: dict[tuple[str, str], list[_Figure]] = {}
    for each in figures:
        by_pod.setdefault((each.namespace, each.pod), []).append(each)
    lines: list[str] = []

    def add(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.extend([f"# HELP {name} [STABLE] {text}", f"# TYPE {name} {kind}"])
        lines.extend(f"{name}{labels} {float(value)!r} {stamp}" for labels, value in samples)

    own = [(f'{{container="{f.container}",namespace="{f.namespace}",pod="{f.pod}"}}', f) for f in figures]
    pods = [(f'{{namespace="{namespace}",pod="{pod}"}}', _sum(of)) for (namespace, pod), of in by_pod.items()]
    total = _sum(figures)
    cpu, memory = "Cumulative cpu time consumed by the %s in core-seconds", "Current working set of the %s in bytes"
    add(
        "container_cpu_usage_seconds_total",
        "counter",
        cpu % "container",
        ((labels, f.usage.cpu_seconds) for labels, f in own),
    )
    add(
        "container_memory_working_set_bytes",
        "gauge",
        memory % "container",
        ((labels, f.usage.memory_bytes) for labels, f in own),
    )
    add(
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds",
        ((labels, f.since.timestamp()) for labels, f in own),
    )
    add("node_cpu_usage_seconds_total", "counter", cpu % "node", [("", total.cpu_seconds)])
    add("node_memory_working_set_bytes", "gauge", memory % "node", [("", total.memory_bytes)])
    add("pod_cpu_usage_seconds_total", "counter", cpu % "pod", ((labels, of.cpu_seconds) for labels, of in pods))
    add("pod_memory_working_set_bytes", "gauge", memory % "pod", ((labels, of.memory_bytes) for labels, of in pods))
    lines.extend(
        [
            "# HELP resource_scrape_error [STABLE] 1 if some figures could not be had, else 0",
            "# TYPE resource_scrape_error gauge",
            "resource_scrape_error 0",
        ]
    )
    return "\n".join(lines) + "\n"


def _figures(workers: Iterable[PodWorker]) -> Iterator[_Figure]:
    for worker in workers:
        metadata = worker.newest.metadata
        for name, record in worker.records.items():
            run = worker.running(name)
            if run is not None and isinstance(record.state, Running):
                yield _Figure(metadata.namespace, metadata.name, metadata.uid, name, record.state.since, run.usage())


def _sum(figures: Iterable[_Figure]) -> Usage:
    usages = [each.usage for each in figures]
    return Usage(sum(each.cpu_seconds for each in usages), sum(each.memory_bytes for each in usages))


def _usage(usage: Usage, rate: float, *, now: dt.datetime) -> dict[str, Any]:
    moment = meta.time_text(now)
    return {
        "cpu": {
            "time": moment,
            "usageNanoCores": int(rate * _NANOS),
            "usageCoreNanoSeconds": int(usage.cpu_seconds * _NANOS),
        },
        "memory": {"time": moment, "workingSetBytes": usage.memory_bytes},
    }
