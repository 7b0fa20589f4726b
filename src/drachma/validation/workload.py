"""Rules for what runs pods from a template: the template itself, the selector that finds its pods, replica sets,
deployments.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.podspec import choices, selectors
from drachma.validation.podspec import spec as pod_spec
from drachma.values import labels

TEMPLATE: Final = SPEC.child("template")
_SELECTOR: Final = SPEC.child("selector")
_STRATEGY: Final = SPEC.child("strategy")
_PERCENT: Final = re.compile("[0-9]+%")
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_MORE_THAN_ALL: Final = "cannot be greater than status.replicas"


def check_template(template: Mapping[str, Any], at: Path = TEMPLATE) -> Errors:
    """A template of pods."""
    own, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from metadata.labels(own.get("labels") or {}, at.child("labels"))
    yield from metadata.annotations(own.get("annotations") or {}, at.child("annotations"))
    yield from pod_spec.check(spec, at.child("spec"), is_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield fielderror.forbidden(at.child("spec", "ephemeralContainers"), detail)


def check_replica_set(spec: Mapping[str, Any]) -> Errors:
    """The spec of a replica set."""
    for field in ("replicas", "minReadySeconds"):
        yield from choices.not_negative(spec.get(field, 0), SPEC.child(field))
    yield from check_pods(spec)


def check_deployment(spec: Mapping[str, Any]) -> Errors:
    """The spec of a deployment."""
    yield from choices.not_negative(spec.get("replicas", 0), SPEC.child("replicas"))
    yield from check_pods(spec)
    yield from _strategy(spec.get("strategy") or {})
    ready, deadline = spec.get("minReadySeconds", 0), spec.get("progressDeadlineSeconds")
    yield from choices.not_negative(ready, SPEC.child("minReadySeconds"))
    yield from choices.not_negative(spec.get("revisionHistoryLimit", 0), SPEC.child("revisionHistoryLimit"))
    if deadline is not None:
        yield from choices.not_negative(deadline, SPEC.child("progressDeadlineSeconds"))
        if deadline <= ready:
            detail = "must be greater than minReadySeconds"
            yield fielderror.invalid(SPEC.child("progressDeadlineSeconds"), deadline, detail)


def check_selector_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Which pods belong to a workload is decided once."""
    if spec.get("selector") != old.get("selector"):
        yield fielderror.invalid(_SELECTOR, shown(spec.get("selector")), metadata.IMMUTABLE)


def check_replica_set_status(status: Mapping[str, Any]) -> Errors:
    """How far a replica set is."""
    yield from _counts(status, "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    yield from _counts(status, "observedGeneration", "terminatingReplicas")
    yield from _parts(status, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def check_deployment_status(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """How far a deployment is."""
    yield from _counts(status, "observedGeneration", "replicas", "updatedReplicas", "readyReplicas")
    yield from _counts(status, "availableReplicas", "unavailableReplicas", "terminatingReplicas", "collisionCount")
    yield from _parts(status, "updatedReplicas", "readyReplicas", "availableReplicas")
    collisions = status.get("collisionCount") or 0
    if collisions < (old.get("collisionCount") or 0):
        yield fielderror.invalid(STATUS.child("collisionCount"), collisions, "cannot be decremented")


def matching(selector: Mapping[str, Any] | None) -> labels.Selector | None:
    """What a selector stands for; None where it stands for nothing at all because it is malformed."""
    if selector is None:
        return labels.NOTHING
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in selector.get("matchExpressions") or ()
    ]
    try:
        return labels.Selector.from_parts(selector.get("matchLabels") or {}, expressions)
    except errors.InvalidValueError:
        return None


def check_match(spec: Mapping[str, Any], chosen: labels.Selector) -> Errors:
    """A selector must choose the pods of the template."""
    own = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not chosen.matches(own or {}):
        yield unmatched(own)


def unmatched(own: Mapping[str, str] | None) -> fielderror.FieldError:
    """What is said of a template whose labels its selector does not choose."""
    detail = "`selector` does not match template `labels`"
    return fielderror.invalid(TEMPLATE.child("metadata", "labels"), rendering.wire(own), detail)


def check_share(value: int | str, at: Path) -> Errors:
    """So many pods, or so many of a hundred."""
    if isinstance(value, int):
        yield from choices.not_negative(value, at)
    elif not _PERCENT.fullmatch(value):
        yield fielderror.invalid(at, rendering.wire(value), _PERCENT_RULE)


def check_no_more_than_all(value: int | str, at: Path) -> Errors:
    """A share of pods that exist."""
    if isinstance(value, str) and number(value) > 100:
        yield fielderror.invalid(at, rendering.wire(value), "must not be greater than 100%")


def shown(selector: Mapping[str, Any] | None) -> rendering.Rendered:
    """A label selector with its fields in upstream's order."""
    if selector is None:
        return rendering.NULL
    fields = (
        f'"{field}":{_wire(selector[field])}' for field in ("matchLabels", "matchExpressions") if selector.get(field)
    )
    return rendering.Rendered("{" + ",".join(fields) + "}")


def _wire(value: Any) -> str:
    if isinstance(value, list):
        order = ("key", "operator", "values")
        items = (",".join(f'"{key}":{rendering.wire(each[key])}' for key in order if key in each) for each in value)
        return "[" + ",".join("{" + item + "}" for item in items) + "]"
    return rendering.wire(value)


def check_pods(
    spec: Mapping[str, Any],
    *,
    kind: str = "deployment",
    title: str = "ReplicaSet",
    unreadable: str = "invalid label selector",
    is_lenient: bool = False,
) -> Errors:
    """The selector and template of a workload; it has two names in messages.

    Of an ``unreadable`` selector there is a second message, and of none at all one of its own, but for kinds that are
    lenient.
    """
    selector = spec.get("selector")
    if selector is None:
        if not is_lenient:
            yield fielderror.required(_SELECTOR)
    else:
        yield from selectors.check(selector, _SELECTOR)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield fielderror.invalid(_SELECTOR, shown(selector), f"empty selector is invalid for {kind}")
    chosen = matching(selector)
    if chosen is None and not is_lenient:
        yield fielderror.invalid(_SELECTOR, shown(selector), unreadable)
        return
    if chosen is not None:
        yield from check_match(spec, chosen)
    template = spec.get("template") or {}
    yield from check_template(template)
    yield from check_lasting(template.get("spec") or {}, title=title)


def check_lasting(pod: Mapping[str, Any], *, title: str) -> Errors:
    """The spec of pods that are to run for ever."""
    if pod.get("restartPolicy", "") != "Always":
        policy = rendering.named(pod.get("restartPolicy", ""))
        yield fielderror.not_supported(TEMPLATE.child("spec", "restartPolicy"), policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {title} is not Supported"
        yield fielderror.forbidden(TEMPLATE.child("spec", "activeDeadlineSeconds"), detail)


def _strategy(strategy: Mapping[str, Any]) -> Errors:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    at = _STRATEGY.child("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield fielderror.forbidden(at, "may not be specified when strategy `type` is 'Recreate'")
        return
    if kind != "RollingUpdate":
        given = rendering.Rendered(f'{{"Type":{rendering.named(kind)},"RollingUpdate":{shown_rolling(rolling)}}}')
        yield fielderror.not_supported(_STRATEGY, given, ("Recreate", "RollingUpdate"))
        return
    unavailable, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
    yield from check_share(unavailable, at.child("maxUnavailable"))
    yield from check_share(surge, at.child("maxSurge"))
    if not number(unavailable) and not number(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        yield fielderror.invalid(at.child("maxUnavailable"), rendering.wire(unavailable), detail)
    yield from check_no_more_than_all(unavailable, at.child("maxUnavailable"))


def shown_rolling(rolling: Mapping[str, Any] | None) -> str:
    """How a rollout goes, in the form of upstream's internal type."""
    if rolling is None:
        return "null"
    shares = (rendering.wire(rolling.get(field, 0)) for field in ("maxUnavailable", "maxSurge"))
    return '{{"MaxUnavailable":{},"MaxSurge":{}}}'.format(*shares)


def number(value: int | str) -> int:
    """A share as a number, whether it is one of pods or of a hundred."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if _PERCENT.fullmatch(value) else 0


def _counts(status: Mapping[str, Any], *fields: str) -> Errors:
    for field in fields:
        yield from choices.not_negative(status.get(field) or 0, STATUS.child(field))


def _parts(status: Mapping[str, Any], *fields: str) -> Errors:
    every, ready, available = (status.get(field, 0) for field in ("replicas", "readyReplicas", "availableReplicas"))
    for field in fields:
        if status.get(field, 0) > every:
            yield fielderror.invalid(STATUS.child(field), status.get(field, 0), _MORE_THAN_ALL)
    if available > ready:
        yield fielderror.invalid(STATUS.child("availableReplicas"), available, "cannot be greater than readyReplicas")
