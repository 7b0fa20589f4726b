"""Pauses before a job replaces a failed pod; longer after each failure in a row. Pure."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.api import pod
from drachma.claims import conditions

INITIAL_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 600.0


class Failures(msgspec.Struct, frozen=True):
    """Failures of a job's pods since the last success."""

    count: int = 0
    last: dt.datetime | None = None

    def followed_by(self, succeeded: Iterable[pod.Pod], failed: Iterable[pod.Pod]) -> "Failures":
        """Return the failures after these pods have finished."""
        failures = sorted(map(finish_time, failed))
        successes = sorted(map(finish_time, succeeded))
        if not successes:
            return Failures(self.count + len(failures), failures[-1]) if failures else self
        later = [moment for moment in failures if moment > successes[-1]]
        return Failures(len(later), later[-1] if later else None)

    def remaining(self, now: dt.datetime) -> float:
        """Return the seconds to wait from now on."""
        if self.last is None or not self.count:
            return 0.0
        # After 64 doublings every pause is the longest one.
        pause = min(INITIAL_SECONDS * 2.0 ** min(self.count - 1, 64), LONGEST_SECONDS)
        return float(max(pause - (now - self.last).total_seconds(), 0.0))


def finish_time(pod: pod.Pod) -> dt.datetime:
    """Return the finish time of a pod: of its last container, of its readiness, its deletion or its creation."""
    moments = [_container_end(each) for each in _lasting_containers(pod)]
    if moments and None not in moments:
        return max(moment for moment in moments if moment is not None)
    ready = conditions.find(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - dt.timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None, "a pod of the server has been created some time"
    return metadata.creation_timestamp


def _lasting_containers(pod: pod.Pod) -> list[pod.ContainerStatus]:
    """Return the containers that run as long as the pod: all but init containers that end."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    lasting = [each for each in pod.status.init_container_statuses if each.name in sidecars]
    return [*pod.status.container_statuses, *lasting]


def _container_end(status: pod.ContainerStatus) -> dt.datetime | None:
    return status.state.terminated.finished_at if status.state.terminated is not None else None
