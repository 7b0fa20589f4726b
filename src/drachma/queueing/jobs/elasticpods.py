"""Pods of elastic jobs: held back by a gate, and let go as far as the workload that runs has quota for them.

A job that becomes larger has new pods at once, made from a template with the gate. They go when a workload is admitted
that has room for them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.api import pod
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podsetinfo

GATE: Final = "kueue.x-k8s.io/elastic-job"
_ENDED: Final = ("Succeeded", "Failed")

Document = Mapping[str, Any]


def slice_name(of: pod.Pod) -> str:
    """The name of the first of the workloads that a pod is of, each in place of the one before; empty if of none."""
    annotations = of.metadata.annotations
    return annotations.get(workload.SLICE_NAME) or annotations.get(podsetinfo.WORKLOAD_ANNOTATION, "")


def is_gated(of: pod.Pod) -> bool:
    """Whether a pod is held back."""
    return any(each.name == GATE for each in of.spec.scheduling_gates)


def gated(template: Document) -> Document:
    """A pod template whose pods are held back."""
    spec = template.get("spec", {})
    gates = spec.get("schedulingGates") or []
    if any(each.get("name") == GATE for each in gates):
        return template
    return {**template, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def let_go(of: workload.Workload, pods: Iterable[pod.Pod]) -> list[pod.Pod]:
    """The pods that a workload has quota for and that are still held back, by name; those that run count first."""
    room = Counter({each.name: int(each.count) for each in of.spec.pod_sets})
    waiting: defaultdict[str, list[pod.Pod]] = defaultdict(list)
    for each in pods:
        name = each.metadata.labels.get(podsetinfo.POD_SET_LABEL, "")
        if each.status.phase in _ENDED:
            continue
        if is_gated(each):
            waiting[name].append(each)
        else:
            room[name] -= 1
    return [
        each
        for name, held in sorted(waiting.items())
        for each in sorted(held, key=lambda each: each.metadata.name)[: max(room[name], 0)]
    ]
