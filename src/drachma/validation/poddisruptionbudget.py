"""Rules for disruption budgets: how many pods must stay or may go, and what the controller says of them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.validation import conditions, fielderror, rendering, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS
from drachma.validation.podspec import choices, selectors

_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a budget."""
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield fielderror.invalid(SPEC, _shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        share = spec.get(field)
        if share is not None:
            yield from workload.check_share(share, SPEC.child(field))
            yield from workload.check_no_more_than_all(share, SPEC.child(field))
    yield from selectors.check(spec.get("selector"), SPEC.child("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        at = SPEC.child("unhealthyPodEvictionPolicy")
        yield fielderror.not_supported(at, rendering.named(policy), _POLICIES)


def check_status(status: Mapping[str, Any]) -> Errors:
    """The status of a budget."""
    of_status = msgspec.convert(status.get("conditions") or (), tuple[meta.Condition, ...])
    yield from conditions.check(of_status, STATUS.child("conditions"))
    for field in _COUNTS:
        yield from choices.not_negative(status.get(field) or 0, STATUS.child(field))


def _shown(spec: Mapping[str, Any]) -> rendering.Rendered:
    """A spec in the form of upstream's internal type."""
    parts = (
        ("MinAvailable", rendering.wire(spec["minAvailable"])),
        ("Selector", workload.shown(spec.get("selector"))),
        ("MaxUnavailable", rendering.wire(spec["maxUnavailable"])),
        ("UnhealthyPodEvictionPolicy", rendering.wire(spec.get("unhealthyPodEvictionPolicy"))),
    )
    return rendering.Rendered("{" + ",".join(f'"{name}":{value}' for name, value in parts) + "}")
