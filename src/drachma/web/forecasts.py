"""Answers from simulated futures: the effect of another quota, and the starts of waiting workloads.

They are those of ``drachma whatif`` and ``drachma when``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.queueing.kinds import clusterqueue, workload
from drachma.runtime.cache import Key
from drachma.simulate.timeline import durations, future, whatif
from drachma.simulate.timeline.future import ClusterNow
from drachma.values import quantity

_SAMPLES: Final = 10
_HORIZON: Final = 30 * 86_400.0


class QuotaChange(msgspec.Struct, frozen=True, kw_only=True):
    """Another nominal quota of a cluster queue."""

    queue: str
    resource: str
    flavor: str = ""
    """The first flavor with the resource if empty."""
    nominal: str


class QuotaAnswer(NamedTuple):
    """Effect of a change of quota."""

    title: str
    difference: whatif.Difference

    @property
    def is_empty(self) -> bool:
        """True if the change makes no difference."""
        difference = self.difference
        return not (difference.starts or difference.waits or difference.evicted or difference.moves)


def change_quota(cluster: ClusterNow, change: QuotaChange) -> QuotaAnswer:
    """Return who starts, waits and is evicted with another quota.

    Raises:
        errors.InvalidValueError: the queue does not exist, has no such resource, or the quota is no quantity.
    """
    queues = {each.metadata.name: each for each in cluster.queueing if isinstance(each, clusterqueue.ClusterQueue)}
    queue = queues.get(change.queue)
    if queue is None:
        raise errors.InvalidValueError(f"cluster queue {change.queue[:253]!r}: does not exist")
    try:
        nominal = quantity.Quantity.parse(change.nominal)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"quota {change.nominal!r}: {error}") from None
    if nominal.nanos < 0:
        raise errors.InvalidValueError(f"quota {change.nominal!r}: is negative")
    before: quantity.Quantity | None = None
    flavor_name = ""
    groups = []
    for group in queue.spec.resource_groups:
        flavors = []
        for flavor in group.flavors:
            resources = []
            for each in flavor.resources:
                is_it = each.name == change.resource and change.flavor in ("", flavor.name)
                if is_it and before is None:
                    before, flavor_name = each.nominal_quota, flavor.name
                    resources.append(msgspec.structs.replace(each, nominal_quota=nominal))
                else:
                    resources.append(each)
            flavors.append(msgspec.structs.replace(flavor, resources=tuple(resources)))
        groups.append(msgspec.structs.replace(group, flavors=tuple(flavors)))
    if before is None:
        flavor_text = f" of flavor {change.flavor[:253]!r}" if change.flavor else ""
        raise errors.InvalidValueError(
            f"cluster queue {change.queue}: has no quota for {change.resource[:253]!r}{flavor_text}"
        )
    changed = msgspec.structs.replace(queue, spec=msgspec.structs.replace(queue.spec, resource_groups=tuple(groups)))
    difference = whatif.compare(cluster, [changed])
    title = f"{change.queue}: {nominal} of {change.resource} ({flavor_name}) instead of {before}"
    return QuotaAnswer(title, difference)


class Estimate(NamedTuple):
    """Estimated start of a waiting workload."""

    key: Key
    text: str


def estimate(cluster: ClusterNow, assumed: float | None) -> list[Estimate]:
    """Return when the waiting workloads would start, the earliest first."""
    queued = {
        f"{each.metadata.namespace}/{each.metadata.name}"
        for each in cluster.queueing
        if isinstance(each, workload.Workload)
    }
    assumption = future.Assumption(assumed)
    forecasts = future.forecast_all(cluster, assumption=assumption, samples=_SAMPLES, horizon=_HORIZON, watched=queued)
    rows = []
    for key, forecast in forecasts.items():
        median = forecast.percentile(50)
        rows.append((float("inf") if median is None else median, key, _describe(forecast)))
    return [Estimate(Key(*key.split("/", 1)), text) for _, key, text in sorted(rows)]


def _describe(forecast: future.Forecast) -> str:
    if forecast.node:
        return "now"
    median = forecast.percentile(50)
    if median is None:
        if not forecast.starts:
            return "not within 30 days"
        return f"within 30 days in {len(forecast.starts)} of {forecast.samples} simulated futures"
    low, high = forecast.likely_range()
    upper = durations.show(high) if high is not None else "more than 30 days"
    return f"in {durations.show(median)} (80 %: {durations.show(low or 0.0)} to {upper})"
