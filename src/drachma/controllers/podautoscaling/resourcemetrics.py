"""Metrics of an autoscaler: what each asks for, with the value that the status shows.

Resources of pods and of containers come from the resource metrics API (``metrics.k8s.io``). Other metrics need the
custom or external metrics APIs of an extension API server, which this controller does not read: they count as invalid.
"""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import horizontalpodautoscaler as hpa
from drachma.api import meta, pod
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ZERO_TEXT, Struct
from drachma.client import Client, protocol, target
from drachma.controllers.podautoscaling import replicacount
from drachma.values import quantity

_WINDOW: Final = dt.timedelta(seconds=60)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_APIS: Final = {
    "Pods": ("FailedGetPodsMetric", "custom metrics API", "custom.metrics.k8s.io"),
    "Object": ("FailedGetObjectMetric", "custom metrics API", "custom.metrics.k8s.io"),
    "External": ("FailedGetExternalMetric", "external metrics API", "external.metrics.k8s.io"),
}


class _ContainerMetrics(Struct, frozen=True, kw_only=True):
    name: str = ZERO_TEXT
    usage: Mapping[str, quantity.Quantity] = ABSENT_MAP


class _PodMetrics(meta.Object, frozen=True, kw_only=True):
    timestamp: meta.Time | None = None
    window: str = ABSENT_TEXT
    containers: tuple[_ContainerMetrics, ...] = ()


_POD_METRICS: Final = target.view_of(
    target.metadata_of("metrics.k8s.io", "v1beta1", plural="pods", kind="PodMetrics", namespaced=True), _PodMetrics
)


class Workload(NamedTuple):
    """The pods that an autoscaler is about: their namespace, label selector and number of replicas."""

    namespace: str
    selector: str
    replicas: int
    pods: Sequence[pod.Pod]


class MetricProposal(NamedTuple):
    """Replicas that one metric asks for, its name in messages, and its value in the status."""

    replicas: int
    name: str
    status: dict[str, Any]


class MetricError(errors.ReconcileError):
    """A metric that cannot be evaluated: the reason of its event and condition, and the name of its source."""

    def __init__(self, reason: str, source: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason
        self.source: Final = source


async def evaluate(
    client: Client,
    metric: hpa.MetricSpec,
    workload: Workload,
    *,
    tolerances: replicacount.Tolerances,
    now: dt.datetime,
) -> MetricProposal:
    """Return what a metric asks for. Raises MetricError."""
    source = metric.resource or metric.container_resource
    if source is None:
        if metric.type not in _APIS:
            raise MetricError("InvalidMetricSourceType", metric.type, f'unknown metric source type "{metric.type}"')
        reason, api, group = _APIS[metric.type]
        problem = f"unable to fetch metrics from {api}: no {api} ({group}) registered"
        raise MetricError(reason, f"{metric.type.lower()} metric", problem)
    container = "" if metric.container_resource is None else metric.container_resource.container
    is_of_container = bool(container)
    reason = "FailedGetContainerResourceMetric" if is_of_container else "FailedGetResourceMetric"
    label = f"{source.name} container resource" if is_of_container else f"{source.name} resource"
    own = source.target
    if own.average_value is None and own.average_utilization is None:
        problem = "neither an average utilization target nor an average value (usage) target was set"
        raise MetricError(reason, label, f"invalid resource metric source: {problem}")
    asks_value = own.average_value is not None
    try:
        samples = await _samples(client, source.name, workload, container=container)
        if not workload.pods:
            raise errors.ReconcileError("no pods returned by selector while calculating replica count")
        if own.average_value is not None:
            proposal = replicacount.propose_by_average(
                workload.replicas,
                own.average_value.milli_value(),
                resource=source.name,
                pods=workload.pods,
                samples=samples,
                tolerances=tolerances,
                now=now,
            )
        else:
            assert own.average_utilization is not None, "one of the two is set"
            proposal = replicacount.propose_by_utilization(
                workload.replicas,
                own.average_utilization,
                resource=source.name,
                container=container,
                pods=workload.pods,
                samples=samples,
                tolerances=tolerances,
                now=now,
            )
    except errors.ReconcileError as error:
        what = "usage" if asks_value else "utilization"
        raise MetricError(reason, label, f"failed to get {source.name} {what}: {error}") from None
    name = label if asks_value else f"{label} utilization (percentage of request)"
    return MetricProposal(proposal.replicas, name, _status(metric.type, source.name, proposal, container=container))


def _status(kind: str, resource: str, proposal: replicacount.Proposal, *, container: str) -> dict[str, Any]:
    values: dict[str, Any] = {"averageValue": _text(resource, proposal.average_milli_value)}
    if proposal.utilization is not None:
        values["averageUtilization"] = proposal.utilization
    content: dict[str, Any] = {"name": resource, "current": values}
    if container:
        content["container"] = container
    return {"type": kind, kind[:1].lower() + kind[1:]: content}


def _text(resource: str, milli_value: int) -> str:
    if resource == replicacount.CPU or milli_value % 1000:
        return str(quantity.Quantity.from_milli(milli_value))
    return str(quantity.Quantity.from_int(milli_value // 1000))


async def _samples(
    client: Client, resource: str, workload: Workload, *, container: str
) -> dict[str, replicacount.UsageSample]:
    selection = protocol.Selection(namespace=workload.namespace, labels=workload.selector)
    try:
        metrics = (await client.list(_POD_METRICS, selection)).items
    except (errors.RefusedError, errors.UnreachableError) as error:
        problem = f"unable to fetch metrics from resource metrics API: {error}"
        raise errors.ReconcileError(f"unable to get metrics for resource {resource}: {problem}") from None
    if not metrics:
        problem = "no metrics returned from resource metrics API"
        raise errors.ReconcileError(f"unable to get metrics for resource {resource}: {problem}")
    samples = {}
    for each in metrics:
        usages = [own.usage.get(resource) for own in each.containers if container in ("", own.name)]
        value = _total(usages)
        if value is not None and each.timestamp is not None:
            samples[each.metadata.name] = replicacount.UsageSample(each.timestamp, _window(each.window), value)
    return samples


def _total(usages: Iterable[quantity.Quantity | None]) -> int | None:
    """Return the sum in thousandths, or None if the usage of a container is unknown."""
    total = 0
    for usage in usages:
        if usage is None:
            return None
        total += usage.milli_value()
    return total


def _window(text: str) -> dt.timedelta:
    parts = _DURATION.findall(text)
    return dt.timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts)) if parts else _WINDOW
