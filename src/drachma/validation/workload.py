"""Rules that kinds with a pod template share: the template, the selector that must match it, shares of pods."""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.validation import constraints, fielderror, metadata, rendering, selectors
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import SPEC, Document, Path
from drachma.validation.podspec import spec as pod_spec
from drachma.values import labels

TEMPLATE: Final = SPEC.child("template")

_PERCENT: Final = re.compile("[0-9]+%")
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


# Templates and selectors


def check_job_template(template: Document, at: Path) -> Errors:
    """Yield the errors of a pod template below a job template."""
    own = template.get("metadata") or {}
    yield from metadata.labels(own.get("labels") or {}, at.child("labels"))
    yield from metadata.annotations(own.get("annotations") or {}, at.child("annotations"))
    yield from pod_spec.check(template.get("spec") or {}, at.child("spec"), is_pod=False)


def check_template(template: Document, at: Path) -> Errors:
    """Yield the errors of a pod template."""
    yield from check_job_template(template, at)
    if (template.get("spec") or {}).get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield fielderror.forbidden(at.child("spec", "ephemeralContainers"), detail)


def check_pods(
    spec: Document,
    at: Path,
    *,
    kind: str = "deployment",
    title: str = "ReplicaSet",
    unreadable: str = "invalid label selector",
    is_lenient: bool = False,
) -> Errors:
    """Yield the errors of the selector and the template of a workload, which has two names in messages.

    A malformed selector has a second error, with ``unreadable`` as its detail, and an absent one has an error, except
    for lenient kinds.
    """
    selector, place = spec.get("selector"), at.child("selector")
    if selector is not None:
        yield from selectors.check(selector, place)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield fielderror.invalid(place, show_selector(selector), f"empty selector is invalid for {kind}")
    elif not is_lenient:
        yield fielderror.required(place)
    compiled = compile_selector(selector)
    if compiled is None and not is_lenient:
        yield fielderror.invalid(place, show_selector(selector), unreadable)
        return
    if compiled is not None:
        yield from check_match(spec, compiled, at)
    template = spec.get("template") or {}
    yield from check_template(template, at.child("template"))
    yield from check_restarts_always(template.get("spec") or {}, at.child("template", "spec"), title=title)


def check_restarts_always(pod: Document, at: Path, *, title: str) -> Errors:
    """Yield errors unless pods of a workload run until they are deleted."""
    if pod.get("restartPolicy", "") != "Always":
        policy = rendering.named(pod.get("restartPolicy", ""))
        yield fielderror.not_supported(at.child("restartPolicy"), policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {title} is not Supported"
        yield fielderror.forbidden(at.child("activeDeadlineSeconds"), detail)


def check_restart_policy_of_job(pod: Document, at: Path) -> Errors:
    """Yield an error unless the pods of a job come to an end."""
    policy, place = pod.get("restartPolicy", ""), at.child("restartPolicy")
    if policy in ("", "Always"):
        yield fielderror.required(place, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield fielderror.not_supported(place, rendering.named(policy), ("OnFailure", "Never"))


def compile_selector(selector: Document | None) -> labels.Selector | None:
    """Return the selector that a document describes, or None if it is malformed; without one, nothing matches."""
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


def check_match(spec: Document, selector: labels.Selector, at: Path) -> Errors:
    """Yield an error unless a selector matches the labels of the template."""
    own = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not selector.matches(own or {}):
        yield unmatched(own, at)


def unmatched(own: Mapping[str, str] | None, at: Path) -> FieldError:
    """Return the error of a template whose labels the selector does not match."""
    detail = "`selector` does not match template `labels`"
    return fielderror.invalid(at.child("template", "metadata", "labels"), rendering.wire(own), detail)


def show_selector(selector: Document | None) -> rendering.Rendered:
    """Return a label selector as messages show it, with fields in upstream's order."""
    if selector is None:
        return rendering.NULL
    fields = (
        f'"{field}":{_show_part(selector[field])}'
        for field in ("matchLabels", "matchExpressions")
        if selector.get(field)
    )
    return rendering.Rendered("{" + ",".join(fields) + "}")


def _show_part(value: Any) -> str:
    if isinstance(value, list):
        order = ("key", "operator", "values")
        items = (",".join(f'"{key}":{rendering.wire(each[key])}' for key in order if key in each) for each in value)
        return "[" + ",".join("{" + item + "}" for item in items) + "]"
    return rendering.wire(value)


# Shares of pods


def share(value: int | str, at: Path) -> Found:
    """Check a number of pods, or a percentage."""
    if isinstance(value, int):
        return constraints.not_negative(value, at)
    return () if _PERCENT.fullmatch(value) else [fielderror.invalid(at, rendering.wire(value), _PERCENT_RULE)]


def share_of_all(value: int | str, at: Path) -> Found:
    """Check that a percentage is not above 100."""
    if isinstance(value, str) and share_number(value) > 100:
        return [fielderror.invalid(at, rendering.wire(value), "must not be greater than 100%")]
    return ()


def share_number(value: int | str) -> int:
    """Return the number in a share, of pods or per cent."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
