"""How long a job waits before it makes a pod in place of one that failed: longer after each failure in a row. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.api import pod

INITIAL_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 600.0


class Failures(msgspec.Struct, frozen=True):
    """The failures of a job's pods since the last success."""

    count: int = 0
    last: dt.datetime | None = None

    def followed_by(self, succeeded: Iterable[pod.Pod], failed: Iterable[pod.Pod]) -> "Failures":
        """After these pods have ended."""
        failures = sorted(map(finish_time, failed))
        successes = sorted(map(finish_time, succeeded))
        if not successes:
            return Failures(self.count + len(failures), failures[-1]) if failures else self
        later = [moment for moment in failures if moment > successes[-1]]
        return Failures(len(later), later[-1] if later else None)

    def remaining(self, now: dt.datetime) -> float:
        """Seconds to wait from now on."""
        if self.last is None or not self.count:
            return 0.0
        # Beyond 64 doublings everything is at its longest, and floats need not go further.
        pause = min(INITIAL_SECONDS * 2.0 ** min(self.count - 1, 64), LONGEST_SECONDS)
        return float(max(pause - (now - self.last).total_seconds(), 0.0))


def finish_time(of: pod.Pod) -> dt.datetime:
    """When a pod ended: its last container did, it ceased to be ready, or was deleted; else when it was made."""
    moments = [_container_end(each) for each in _lasting_containers(of)]
    if moments and None not in moments:
        return max(moment for moment in moments if moment is not None)
    for each in of.status.conditions:
        if each.type == "Ready" and each.status == "False" and each.last_transition_time is not None:
            return each.last_transition_time
    metadata = of.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - dt.timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None, "a pod of the server has been created some time"
    return metadata.creation_timestamp


def _lasting_containers(of: pod.Pod) -> list[pod.ContainerStatus]:
    """The containers that run as long as the pod does: all but those that only prepare it."""
    sidecars = {each.name for each in of.spec.init_containers if each.restart_policy == "Always"}
    lasting = [each for each in of.status.init_container_statuses if each.name in sidecars]
    return [*of.status.container_statuses, *lasting]


def _container_end(of: pod.ContainerStatus) -> dt.datetime | None:
    return of.state.terminated.finished_at if of.state.terminated is not None else None
