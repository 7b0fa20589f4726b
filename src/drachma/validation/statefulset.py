"""Rules for stateful sets."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, persistentvolumeclaim, rendering, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS
from drachma.validation.podspec import choices
from drachma.values import names

_MANAGEMENT: Final = ("OrderedReady", "Parallel")
_RETENTION: Final = ("Retain", "Delete")
_CHANGEABLE: Final = (
    "minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "replicas", "revisionHistoryLimit",
    "template", "updateStrategy",
)  # fmt: skip
_UPDATABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_NAMED_BY_SET: Final = ("hostname", "subdomain")
_COUNTS: Final = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "observedGeneration")


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a stateful set."""
    yield from _management(spec.get("podManagementPolicy", ""))
    yield from _strategy(spec.get("updateStrategy") or {})
    yield from _retention(spec.get("persistentVolumeClaimRetentionPolicy"))
    yield from choices.not_negative(spec.get("replicas", 0), SPEC.child("replicas"))
    yield from choices.not_negative(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
    if spec.get("ordinals") is not None:
        yield from choices.not_negative(spec["ordinals"].get("start", 0), SPEC.child("ordinals", "start"))
    if spec.get("serviceName"):
        at = SPEC.child("serviceName")
        yield from fielderror.problems(at, spec["serviceName"], names.dns1123_label(spec["serviceName"]))
    yield from workload.check_pods(_as_made(spec), kind="statefulset", title="StatefulSet", unreadable="")
    for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        at = SPEC.child("volumeClaimTemplates").item(position).child("spec")
        yield from persistentvolumeclaim.check(claim.get("spec") or {}, at)


def _as_made(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec with the pods that are made of it: their names are the set's to give, and so are volumes for claims."""
    template = spec.get("template") or {}
    pod = {field: value for field, value in (template.get("spec") or {}).items() if field not in _NAMED_BY_SET}
    templates = [each.get("metadata", {}).get("name", "") for each in spec.get("volumeClaimTemplates") or ()]
    if templates:
        own = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(templates)]
        others = [volume for volume in pod.get("volumes") or () if volume.get("name") not in templates]
        pod["volumes"] = [*own, *others]
    return {**spec, "template": {**template, "spec": pod}} if template else spec


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Most of a stateful set is decided once."""
    if any(spec.get(field) != old.get(field) for field in {*spec, *old} if field not in _CHANGEABLE):
        yield fielderror.forbidden(SPEC, _UPDATABLE)


def check_status(status: Mapping[str, Any]) -> Errors:
    """How far a stateful set is."""
    for field in (*_COUNTS, "collisionCount"):
        yield from choices.not_negative(status.get(field) or 0, STATUS.child(field))
    for field in ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"):
        if status.get(field, 0) > status.get("replicas", 0):
            yield fielderror.invalid(STATUS.child(field), status[field], "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        detail = "cannot be greater than status.readyReplicas"
        yield fielderror.invalid(STATUS.child("availableReplicas"), status["availableReplicas"], detail)


def _management(policy: str) -> Errors:
    at = SPEC.child("podManagementPolicy")
    if not policy:
        yield fielderror.required(at)
    elif policy not in _MANAGEMENT:
        yield fielderror.invalid(at, rendering.named(policy), f"must be '{_MANAGEMENT[0]}' or '{_MANAGEMENT[1]}'")


def _strategy(strategy: Mapping[str, Any]) -> Errors:
    at, kind, rolling = SPEC.child("updateStrategy"), strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        yield fielderror.required(at)
    elif kind == "OnDelete":
        if rolling is not None:
            shown = rendering.wire(rolling)
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            yield fielderror.invalid(at.child("rollingUpdate"), shown, detail)
    elif kind == "RollingUpdate":
        if rolling is not None:
            below = at.child("rollingUpdate")
            yield from choices.not_negative(rolling.get("partition", 0), below.child("partition"))
            if rolling.get("maxUnavailable") is not None:
                share, place = rolling["maxUnavailable"], below.child("maxUnavailable")
                yield from workload.check_share(share, place)
                if workload.number(share) == 0:
                    yield fielderror.invalid(place, rendering.wire(share), "cannot be 0")
                yield from workload.check_no_more_than_all(share, place)
    else:
        yield fielderror.invalid(at, _shown(strategy), "must be 'RollingUpdate' or 'OnDelete'")


def _shown(strategy: Mapping[str, Any]) -> rendering.Rendered:
    """A strategy in the form of upstream's internal type."""
    rolling = strategy.get("rollingUpdate")
    inner = "null"
    if rolling is not None:
        partition, share = rolling.get("partition", 0), rendering.wire(rolling.get("maxUnavailable"))
        inner = f'{{"Partition":{partition},"MaxUnavailable":{share}}}'
    return rendering.Rendered(f'{{"Type":{rendering.named(strategy.get("type", ""))},"RollingUpdate":{inner}}}')


def _retention(policy: Mapping[str, Any] | None) -> Errors:
    for field in ("whenDeleted", "whenScaled"):
        value = (policy or {}).get(field, "")
        if policy is not None and value not in _RETENTION:
            at = SPEC.child("persistentVolumeClaimRetentionPolicy", field)
            yield fielderror.not_supported(at, rendering.named(value), _RETENTION)
