"""Rules for daemon sets."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS
from drachma.validation.podspec import choices

_STRATEGY: Final = SPEC.child("updateStrategy")
_COUNTS: Final = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a daemon set."""
    yield from workload.check_pods(spec, kind="daemonset", title="DaemonSet", is_lenient=True)
    yield from choices.not_negative(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
    yield from _strategy(spec.get("updateStrategy") or {})
    if spec.get("revisionHistoryLimit") is not None:
        yield from choices.not_negative(spec["revisionHistoryLimit"], SPEC.child("revisionHistoryLimit"))


def check_status(status: Mapping[str, Any]) -> Errors:
    """How far a daemon set is."""
    for field in _COUNTS:
        yield from choices.not_negative(status.get(field) or 0, STATUS.child(field))


def _strategy(strategy: Mapping[str, Any]) -> Errors:
    kind = strategy.get("type", "")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        supported = ("RollingUpdate", "OnDelete")
        yield fielderror.not_supported(_STRATEGY, _shown(strategy), supported)
        return
    rolling, at = strategy.get("rollingUpdate"), _STRATEGY.child("rollingUpdate")
    if rolling is None:
        yield fielderror.required(at)
        return
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from workload.check_share(unavailable, at.child("maxUnavailable"))
    yield from workload.check_no_more_than_all(unavailable, at.child("maxUnavailable"))
    yield from workload.check_share(surge, at.child("maxSurge"))
    yield from workload.check_no_more_than_all(surge, at.child("maxSurge"))
    has_unavailable, has_surge = workload.number(unavailable) != 0, workload.number(surge) != 0
    if has_unavailable and has_surge:
        detail = "may not be set when maxUnavailable is non-zero"
        yield fielderror.invalid(at.child("maxSurge"), rendering.wire(surge), detail)
    if not has_unavailable and not has_surge:
        detail = "cannot be 0 when maxSurge is 0"
        yield fielderror.required(at.child("maxUnavailable"), detail)


def _shown(strategy: Mapping[str, Any]) -> rendering.Rendered:
    """A strategy in the form of upstream's internal type."""
    rolling = workload.shown_rolling(strategy.get("rollingUpdate"))
    return rendering.Rendered(f'{{"Type":{rendering.named(strategy.get("type", ""))},"RollingUpdate":{rolling}}}')
