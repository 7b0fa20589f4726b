"""What the status of a DeviceTaintRule says about its eviction: the condition ``EvictionInProgress``. Pure texts."""

import datetime as dt
from typing import Final, NamedTuple

from drachma.api import devicetaintrule, meta
from drachma.claims import conditions, taints

CONDITION: Final = "EvictionInProgress"

_NOT_AGAIN: Final = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


class Pending(NamedTuple):
    """How many pods have to go, and in how many namespaces they are."""

    pods: int
    namespaces: int

    def text(self, need: tuple[str, str]) -> str:
        """In words; ``need`` is what one pod does, and what several do."""
        pods = f"1 pod {need[0]}" if self.pods == 1 else f"{self.pods} pods {need[1]}"
        places = "1 namespace" if self.namespaces == 1 else f"{self.namespaces} different namespaces"
        return f"{pods} be evicted in {places}"


class Selected(NamedTuple):
    """How many devices a rule selects, of those published and of those allocated."""

    published: int
    allocated: int


def known(rule: devicetaintrule.DeviceTaintRule) -> meta.Condition | None:
    """The condition as it is."""
    return conditions.find(rule.status.conditions, CONDITION)


def condition(
    rule: devicetaintrule.DeviceTaintRule, *, pending: Pending, selected: Selected, evicted: int, now: dt.datetime
) -> meta.Condition | None:
    """The condition as it must be; None if it is so.

    ``pending`` are the pods that have to go, or would have to if the effect were NoExecute; ``evicted`` went already.
    """
    status, reason, message = _outcome(rule, pending, selected, evicted)
    if evicted:
        pods = "1 pod" if evicted == 1 else f"{evicted} pods"
        message = f"{message} {pods} evicted since starting the controller.".lstrip()
    before = known(rule)
    new = meta.Condition(
        type=CONDITION,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
        last_transition_time=before.last_transition_time if before is not None else None,
    )
    if before is not None and _content(before) == _content(new):
        return None
    # It tells when it was last written, too, because that is how often it may be.
    return meta.Condition(
        type=CONDITION,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
        last_transition_time=now.replace(microsecond=0),
    )


def _content(of: meta.Condition) -> tuple[str, str, str, int]:
    return of.status, of.reason, of.message, of.observed_generation


def _outcome(
    rule: devicetaintrule.DeviceTaintRule, pending: Pending, selected: Selected, evicted: int
) -> tuple[str, str, str]:
    """Status, reason and message, without what was evicted."""
    match rule.spec.taint.effect:
        case taints.NO_EXECUTE if pending.pods:
            return "True", "PodsPendingEviction", pending.text(("needs to", "need to")) + "."
        case taints.NO_EXECUTE:
            return "False", "Completed" if evicted else "NotStarted", ""
        case "None":
            devices = f"{_devices(selected.published, 'published')} {_devices(selected.allocated, 'allocated')}"
            would = f"{pending.text(('would', 'would'))} if the effect was NoExecute."
            return "False", "NoEffect", f"{devices} {would} {_NOT_AGAIN}"
        case _:
            return "False", "OtherEffect", "Eviction only happens for the NoExecute effect."


def _devices(count: int, kind: str) -> str:
    return f"1 {kind} device selected." if count == 1 else f"{count} {kind} devices selected."
