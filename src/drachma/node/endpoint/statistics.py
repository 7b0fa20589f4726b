"""Resource usage of pods as the kubelet reports it: ``/stats/summary`` and ``/metrics/resource``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.node.pods.containerstate import Running
from drachma.node.pods.podworker import PodWorker
from drachma.node.runtimes.protocol import Usage

_NANOS: Final = 10**9
_SHORTEST_INTERVAL: Final = 1.0
"""Shortest time in seconds between two samples that give a rate."""


class ContainerUsage(NamedTuple):
    """Usage of a container."""

    namespace: str
    pod: str
    uid: str
    container: str
    since: dt.datetime
    usage: Usage


class Rates:
    """CPU usage rates of containers, from two samples of their CPU time."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str, dt.datetime], tuple[dt.datetime, float, float]] = {}

    def update(self, usages: Iterable[ContainerUsage], *, now: dt.datetime) -> dict[tuple[str, str], float]:
        """Return the CPUs that each container uses, by UID and name; from one sample, the rate since its start."""
        rates: dict[tuple[str, str], float] = {}
        samples: dict[tuple[str, str, dt.datetime], tuple[dt.datetime, float, float]] = {}
        for each in usages:
            key = each.uid, each.container, each.since
            then, used, rate = self._samples.get(key, (each.since, 0.0, 0.0))
            seconds = (now - then).total_seconds()
            if seconds >= _SHORTEST_INTERVAL:
                then, used, rate = now, each.usage.cpu_seconds, (each.usage.cpu_seconds - used) / seconds
            samples[key] = then, used, rate
            rates[each.uid, each.container] = max(rate, 0.0)
        self._samples = samples
        return rates


def summary(node: str, workers: Iterable[PodWorker], rates: Rates, *, now: dt.datetime) -> dict[str, Any]:
    """Return the summary of a node and its pods."""
    usages = list(_usages(workers))
    cpus = rates.update(usages, now=now)
    pods: dict[str, dict[str, Any]] = {}
    for each in usages:
        reference = {"name": each.pod, "namespace": each.namespace, "uid": each.uid}
        pods.setdefault(each.uid, {"podRef": reference, "containers": []})["containers"].append(
            {
                "name": each.container,
                "startTime": meta.time_text(each.since),
                **_usage(each.usage, cpus[each.uid, each.container], now=now),
            }
        )
    for uid, content in pods.items():
        own = [each for each in usages if each.uid == uid]
        content.update(_usage(_sum(own), sum(cpus[uid, each.container] for each in own), now=now))
    total = _usage(_sum(usages), sum(cpus.values()), now=now)
    return {"node": {"nodeName": node, **total}, "pods": list(pods.values())}


def resource_metrics(workers: Iterable[PodWorker], *, now: dt.datetime) -> str:
    """Return the usage of a node and its pods as metrics with timestamps."""
    usages = list(_usages(workers))
    timestamp = int(now.timestamp() * 1000)
    by_pod: dict[tuple[str, str], list[ContainerUsage]] = {}
    for each in usages:
        by_pod.setdefault((each.namespace, each.pod), []).append(each)
    lines: list[str] = []

    def add(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.extend([f"# HELP {name} [STABLE] {text}", f"# TYPE {name} {kind}"])
        lines.extend(f"{name}{labels} {float(value)!r} {timestamp}" for labels, value in samples)

    containers = [
        (f'{{container="{each.container}",namespace="{each.namespace}",pod="{each.pod}"}}', each) for each in usages
    ]
    pods = [(f'{{namespace="{namespace}",pod="{pod}"}}', _sum(own)) for (namespace, pod), own in by_pod.items()]
    total = _sum(usages)
    cpu, memory = "Cumulative cpu time consumed by the %s in core-seconds", "Current working set of the %s in bytes"
    add(
        "container_cpu_usage_seconds_total",
        "counter",
        cpu % "container",
        ((labels, each.usage.cpu_seconds) for labels, each in containers),
    )
    add(
        "container_memory_working_set_bytes",
        "gauge",
        memory % "container",
        ((labels, each.usage.memory_bytes) for labels, each in containers),
    )
    add(
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds",
        ((labels, each.since.timestamp()) for labels, each in containers),
    )
    add("node_cpu_usage_seconds_total", "counter", cpu % "node", [("", total.cpu_seconds)])
    add("node_memory_working_set_bytes", "gauge", memory % "node", [("", total.memory_bytes)])
    add("pod_cpu_usage_seconds_total", "counter", cpu % "pod", ((labels, usage.cpu_seconds) for labels, usage in pods))
    add(
        "pod_memory_working_set_bytes",
        "gauge",
        memory % "pod",
        ((labels, usage.memory_bytes) for labels, usage in pods),
    )
    lines.extend(
        [
            "# HELP resource_scrape_error [STABLE] 1 if some metrics are missing, 0 otherwise",
            "# TYPE resource_scrape_error gauge",
            "resource_scrape_error 0",
        ]
    )
    return "\n".join(lines) + "\n"


def _usages(workers: Iterable[PodWorker]) -> Iterator[ContainerUsage]:
    for worker in workers:
        metadata = worker.pod.metadata
        for name, record in worker.records.items():
            run = worker.current_run(name)
            if run is not None and isinstance(record.state, Running):
                yield ContainerUsage(
                    metadata.namespace, metadata.name, metadata.uid, name, record.state.since, run.usage()
                )


def _sum(containers: Iterable[ContainerUsage]) -> Usage:
    usages = [each.usage for each in containers]
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
