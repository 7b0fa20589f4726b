"""Rate at which nodes of a zone may be tainted: slower the more of the zone is not ready, and zero if all of it is.

If every node is silent, this process is more likely disconnected. Pure; time is passed in.
"""

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.api import node

_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes per second that may be tainted, and thresholds for disrupted and large zones."""

    rate: float = 0.1
    reduced_rate: float = 0.01
    large_zone: int = 50
    unhealthy_share: float = 0.55


class State(enum.Enum):
    """State of a zone."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class Health(msgspec.Struct):
    """Number of ready and other nodes of a zone."""

    ready: int = 0
    unready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.unready


def key_of(node: node.Node) -> str:
    """Return the zone of a node, or an empty text."""
    labels = node.metadata.labels
    region = next((labels[key] for key in _REGION if key in labels), "")
    zone = next((labels[key] for key in _ZONE if key in labels), "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def state_of(health: Health, settings: Settings) -> State:
    """Return the state of a zone with so many nodes."""
    if health.ready == 0 and health.unready > 0:
        return State.FULL
    if health.unready > 2 and health.unready / health.size >= settings.unhealthy_share:
        return State.PARTIAL
    return State.NORMAL


class _Bucket(msgspec.Struct):
    """Rate limiter without a burst."""

    rate: float
    tokens: float
    filled: float

    def take(self, now: float) -> bool:
        self.tokens = min(1.0, self.tokens + (now - self.filled) * self.rate)
        self.filled = now
        # Sums of rates such as 0.1 fall slightly short of one.
        if self.rate <= 0 or self.tokens < 1 - 1e-9:
            return False
        self.tokens = 0.0
        return True


class Zones:
    """All zones and their rates."""

    def __init__(self, settings: Settings) -> None:
        self._settings: Final = settings
        self._buckets: Final[dict[str, _Bucket]] = {}
        self._states: dict[str, State] = {}
        self.is_stopped = False
        """True if all zones are disrupted, and no node may be tainted."""

    def update(self, healths: Mapping[str, Health], *, now: float) -> bool:
        """Update the states of zones. Return True if full disruption of all zones has just begun or ended."""
        self._states = {zone: state_of(health, self._settings) for zone, health in healths.items()}
        is_stopped = bool(self._states) and all(state is State.FULL for state in self._states.values())
        has_changed = is_stopped != self.is_stopped
        self.is_stopped = is_stopped
        for zone in self._buckets.keys() - healths.keys():
            del self._buckets[zone]
        for zone, state in self._states.items():
            rate = 0.0 if is_stopped else self._rate(state, healths[zone].size)
            bucket = self._buckets.setdefault(zone, _Bucket(rate, 1.0, now))
            bucket.rate = rate
        return has_changed

    def take(self, zone: str, *, now: float) -> bool:
        """Return True if one more node of a zone may be tainted now."""
        bucket = self._buckets.get(zone)
        return bucket is not None and bucket.take(now)

    def _rate(self, state: State, size: int) -> float:
        if state is not State.PARTIAL:
            return self._settings.rate
        return self._settings.reduced_rate if size > self._settings.large_zone else 0.0
