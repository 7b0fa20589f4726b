"""Rules for the kinds of apps, and for ReplicationController and PodTemplate."""

from typing import Any, Final

from drachma.validation import fielderror, kindrules, rendering, rulenotation, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path

_SET_FIELDS: Final = ("hostname", "subdomain")
"""Fields of a pod that a stateful set sets."""

_CHANGEABLE: Final = (
    "minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "replicas", "revisionHistoryLimit",
    "template", "updateStrategy",
)  # fmt: skip
_FORBIDDEN: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _show_strategy(strategy: Document, *shares: tuple[str, str, Any]) -> rendering.Rendered:
    display = rendering.internal_fields(strategy.get("rollingUpdate"), *shares)
    return rendering.internal_fields(
        {**strategy, "rollingUpdate": display}, ("Type", "type", ""), ("RollingUpdate", "rollingUpdate", None)
    )


_SHARES: Final = (("MaxUnavailable", "maxUnavailable", 0), ("MaxSurge", "maxSurge", 0))


# ReplicaSet and Deployment


def _unknown_strategy(strategy: Document, at: Path) -> Errors:
    yield fielderror.not_supported(at, _show_strategy(strategy, *_SHARES), ("Recreate", "RollingUpdate"))


def _check_deployment_surge(rolling: Document, at: Path) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    if not workload.share_number(unavailable) and not workload.share_number(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        yield fielderror.invalid(at.child("maxUnavailable"), rendering.wire(unavailable), detail)


# DaemonSet


def _check_daemon_pods(spec: Document, at: Path) -> Errors:
    return workload.check_pods(spec, at, kind="daemonset", title="DaemonSet", is_lenient=True)


def _unknown_daemon_strategy(strategy: Document, at: Path) -> Errors:
    yield fielderror.not_supported(at, _show_strategy(strategy, *_SHARES), ("RollingUpdate", "OnDelete"))


def _check_daemon_surge(rolling: Document, at: Path) -> Errors:
    surge = rolling.get("maxSurge", 0)
    has_unavailable = workload.share_number(rolling.get("maxUnavailable", 0)) != 0
    has_surge = workload.share_number(surge) != 0
    if has_unavailable and has_surge:
        detail = "may not be set when maxUnavailable is non-zero"
        yield fielderror.invalid(at.child("maxSurge"), rendering.wire(surge), detail)
    if not has_unavailable and not has_surge:
        yield fielderror.required(at.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")


# StatefulSet


def _show_stateful_strategy(strategy: Document) -> rendering.Rendered:
    return _show_strategy(strategy, ("Partition", "partition", 0), ("MaxUnavailable", "maxUnavailable", None))


def _not_zero(share: int | str, at: Path) -> Errors:
    if workload.share_number(share) == 0:
        yield fielderror.invalid(at, rendering.wire(share), "cannot be 0")


def _check_stateful_pods(spec: Document, at: Path) -> Errors:
    """Check pods as the set makes them: it sets their names, and the volumes for its claims."""
    template = spec.get("template") or {}
    if template:
        pod = {field: value for field, value in (template.get("spec") or {}).items() if field not in _SET_FIELDS}
        claims = [each.get("metadata", {}).get("name", "") for each in spec.get("volumeClaimTemplates") or ()]
        if claims:
            own = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
            pod["volumes"] = [*own, *(each for each in pod.get("volumes") or () if each.get("name") not in claims)]
        spec = {**spec, "template": {**template, "spec": pod}}
    return workload.check_pods(spec, at, kind="statefulset", title="StatefulSet", unreadable="")


def _check_stateful_update(spec: Document, at: Path, old: Document) -> Errors:
    if any(spec.get(field) != old.get(field) for field in {*spec, *old} if field not in _CHANGEABLE):
        yield fielderror.forbidden(at, _FORBIDDEN)


# ReplicationController


def _check_controller_pods(spec: Document, at: Path) -> Errors:
    template = spec.get("template")
    if template is None:
        return
    own = (template.get("metadata") or {}).get("labels")
    if not (spec.get("selector") or {}).items() <= (own or {}).items():
        yield workload.unmatched(own, at)
    yield from workload.check_template(template, at.child("template"))
    place = at.child("template", "spec")
    yield from workload.check_restarts_always(template.get("spec") or {}, place, title="ReplicationController")


_TYPES: Final = rulenotation.load("apps", globals())
KINDS: Final = kindrules.read(_TYPES)
