"""Limits of a scaling decision: stabilisation over recent recommendations, rates of change, and bounds. Pure.

Follows upstream's two ways: without ``behavior`` a scale-down waits for five minutes and a scale-up at most doubles the
replicas or adds four; with it, the rules of each direction apply.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.api import horizontalpodautoscaler as hpa

DOWNSCALE_WINDOW: Final = 300
"""Seconds for which a scale-down waits unless the behavior says otherwise."""

_LONGEST_PERIOD: Final = dt.timedelta(hours=1)
_FACTOR, _LEAST_LIMIT = 2, 4
_DISABLED: Final = "Disabled"

_WITHIN: Final = "DesiredWithinRange", "the desired count is within the acceptable range"
_TOO_FEW: Final = "TooFewReplicas", "the desired replica count is less than the minimum replica count"
_TOO_MANY: Final = "TooManyReplicas", "the desired replica count is more than the maximum replica count"
_UP_LIMIT: Final = "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
_DOWN_LIMIT: Final = "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"
_READY: Final = "ReadyForNewScale", "recommended size matches current size"
_HIGHER: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_LOWER: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


class Recommendation(NamedTuple):
    """Replicas that metrics asked for at a moment."""

    at: dt.datetime
    replicas: int


class ScaleEvent(NamedTuple):
    """A change of replicas that was carried out: its amount, below zero for a scale-down."""

    at: dt.datetime
    change: int


class Decision(NamedTuple):
    """Replicas after all limits, and the reason and message of each of the two conditions."""

    replicas: int
    stabilization: tuple[str, str]
    limit: tuple[str, str]
    is_limited: bool


class History:
    """Recent recommendations and changes of one autoscaler."""

    def __init__(self) -> None:
        self.recommendations: list[Recommendation] = []
        self.events: list[ScaleEvent] = []

    def start(self, replicas: int, *, now: dt.datetime) -> None:
        """Take the current replicas as the first recommendation, so that nothing scales down at once."""
        if not self.recommendations:
            self.recommendations.append(Recommendation(now, replicas))

    def recommend(self, replicas: int, *, window_seconds: int, now: dt.datetime) -> None:
        """Add a recommendation, and forget those before a window."""
        since = now - dt.timedelta(seconds=window_seconds)
        self.recommendations = [each for each in self.recommendations if each.at >= since]
        self.recommendations.append(Recommendation(now, replicas))

    def scale(self, change: int, *, now: dt.datetime) -> None:
        """Add a change, and forget those that no period covers."""
        self.events = [each for each in self.events if each.at > now - _LONGEST_PERIOD]
        self.events.append(ScaleEvent(now, change))


def decide(
    spec: hpa.HorizontalPodAutoscalerSpec, history: History, *, current: int, replicas: int, now: dt.datetime
) -> Decision:
    """Return the replicas after all limits. Adds the recommendation to the history."""
    least = 1 if spec.min_replicas is None else spec.min_replicas
    if spec.behavior is None:
        history.recommend(replicas, window_seconds=DOWNSCALE_WINDOW, now=now)
        stable = max(each.replicas for each in history.recommendations)
        limited, limit = _limit_by_default(current, stable, least=least, most=spec.max_replicas)
        reason = _HIGHER
    else:
        up, down = spec.behavior.scale_up or hpa.ScalingRules(), spec.behavior.scale_down or hpa.ScalingRules()
        stable = _stabilize(history, up, down, current=current, replicas=replicas, now=now)
        limited, limit = _limit_by_rules(
            history.events, up, down, current=current, replicas=stable, least=least, most=spec.max_replicas, now=now
        )
        reason = _LOWER if replicas >= current else _HIGHER
    return Decision(limited, _READY if stable == replicas else reason, limit, limited != stable)


def _limit_by_default(current: int, replicas: int, *, least: int, most: int) -> tuple[int, tuple[str, str]]:
    scale_limit = max(_FACTOR * current, _LEAST_LIMIT)
    if replicas < least:
        return least, _TOO_FEW
    if replicas > min(most, scale_limit):
        return min(most, scale_limit), _UP_LIMIT if most > scale_limit else _TOO_MANY
    return replicas, _WITHIN


def _stabilize(
    history: History, up: hpa.ScalingRules, down: hpa.ScalingRules, *, current: int, replicas: int, now: dt.datetime
) -> int:
    """Return the nearest number to the current one that all recommendations of the windows allow."""
    up_seconds = up.stabilization_window_seconds or 0
    down_seconds = DOWNSCALE_WINDOW if down.stabilization_window_seconds is None else down.stabilization_window_seconds

    def recent(seconds: int) -> list[int]:
        since = now - dt.timedelta(seconds=seconds)
        return [replicas, *(each.replicas for each in history.recommendations if each.at > since)]

    lowest, highest = min(recent(up_seconds)), max(recent(down_seconds))
    history.recommend(replicas, window_seconds=max(up_seconds, down_seconds), now=now)
    return min(max(current, lowest), highest)


def _limit_by_rules(
    events: Sequence[ScaleEvent],
    up: hpa.ScalingRules,
    down: hpa.ScalingRules,
    *,
    current: int,
    replicas: int,
    least: int,
    most: int,
    now: dt.datetime,
) -> tuple[int, tuple[str, str]]:
    if replicas > current:
        scale_limit = max(_rate_limit(up, events, current=current, direction=1, now=now), current)
        if replicas > min(most, scale_limit):
            return min(most, scale_limit), _UP_LIMIT if most > scale_limit else _TOO_MANY
    elif replicas < current:
        scale_limit = min(_rate_limit(down, events, current=current, direction=-1, now=now), current)
        if replicas < max(least, scale_limit):
            return max(least, scale_limit), _DOWN_LIMIT if least < scale_limit else _TOO_FEW
    return replicas, _WITHIN


def _rate_limit(
    rules: hpa.ScalingRules, events: Sequence[ScaleEvent], *, current: int, direction: int, now: dt.datetime
) -> int:
    """Return the replicas that the policies of a direction allow now: 1 is up, -1 is down."""
    if rules.select_policy == _DISABLED:
        return current
    choose: Callable[[Iterable[int]], int] = max if (rules.select_policy != "Min") == (direction > 0) else min
    limits = [_policy_limit(each, events, current=current, direction=direction, now=now) for each in rules.policies]
    return choose(limits) if limits else current


def _policy_limit(
    policy: hpa.ScalingPolicy, events: Sequence[ScaleEvent], *, current: int, direction: int, now: dt.datetime
) -> int:
    since = now - dt.timedelta(seconds=policy.period_seconds)
    at_start = current - sum(each.change for each in events if each.at > since)
    if policy.type == "Pods":
        return at_start + direction * policy.value
    exact = at_start * (100 + direction * policy.value) / 100
    return math.ceil(exact) if direction > 0 else int(exact)
