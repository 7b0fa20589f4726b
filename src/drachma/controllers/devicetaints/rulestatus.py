"""Condition ``EvictionInProgress`` in the status of a DeviceTaintRule. Pure."""

import datetime as dt
from typing import Final, NamedTuple

from drachma.api import devicetaintrule, meta
from drachma.claims import conditions, taints

CONDITION: Final = "EvictionInProgress"

_NOT_AGAIN: Final = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


class Pending(NamedTuple):
    """Number of pods to evict, and of their namespaces."""

    pods: int
    namespaces: int

    def text(self, need: tuple[str, str]) -> str:
        """Describe the pods; ``need`` has the verb for one pod and for several."""
        pods = f"1 pod {need[0]}" if self.pods == 1 else f"{self.pods} pods {need[1]}"
        places = "1 namespace" if self.namespaces == 1 else f"{self.namespaces} different namespaces"
        return f"{pods} be evicted in {places}"


class Selected(NamedTuple):
    """Number of devices that a rule selects, among published and among allocated ones."""

    published: int
    allocated: int


def current_condition(rule: devicetaintrule.DeviceTaintRule) -> meta.Condition | None:
    """Return the current condition."""
    return conditions.find(rule.status.conditions, CONDITION)


def condition(
    rule: devicetaintrule.DeviceTaintRule, *, affected_pods: Pending, selected: Selected, evicted: int, now: dt.datetime
) -> meta.Condition | None:
    """Return the new condition, or None if it is unchanged.

    ``affected_pods`` are the pods to evict, or those that NoExecute would evict; ``evicted`` is the number of pods that
    are evicted already.
    """
    status, reason, message = _outcome(rule, affected_pods, selected, evicted)
    if evicted:
        pods = "1 pod" if evicted == 1 else f"{evicted} pods"
        message = f"{message} {pods} evicted since starting the controller.".lstrip()
    before = current_condition(rule)
    # The time is that of the last write, because it limits the rate of writes.
    new = meta.Condition(
        type=CONDITION,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
        last_transition_time=now.replace(microsecond=0),
    )
    return None if before is not None and _content(before) == _content(new) else new


def _content(condition: meta.Condition) -> tuple[str, str, str, int]:
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _outcome(
    rule: devicetaintrule.DeviceTaintRule, affected_pods: Pending, selected: Selected, evicted: int
) -> tuple[str, str, str]:
    """Return status, reason and message, without the evicted pods."""
    match rule.spec.taint.effect:
        case taints.NO_EXECUTE if affected_pods.pods:
            return "True", "PodsPendingEviction", affected_pods.text(("needs to", "need to")) + "."
        case taints.NO_EXECUTE:
            return "False", "Completed" if evicted else "NotStarted", ""
        case "None":
            devices = f"{_devices(selected.published, 'published')} {_devices(selected.allocated, 'allocated')}"
            would = f"{affected_pods.text(('would', 'would'))} if the effect was NoExecute."
            return "False", "NoEffect", f"{devices} {would} {_NOT_AGAIN}"
        case _:
            return "False", "OtherEffect", "Eviction only happens for the NoExecute effect."


def _devices(count: int, kind: str) -> str:
    return f"1 {kind} device selected." if count == 1 else f"{count} {kind} devices selected."
