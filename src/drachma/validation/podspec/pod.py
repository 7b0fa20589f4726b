"""Rules for pods that do not hold for templates: annotations, and fields that only existing pods can have.

The server applies them in addition to those of :mod:`.spec`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import constraints, fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC
from drachma.validation.podspec import apparmor, containers

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_COST: Final = re.compile(r"0|-?[1-9][0-9]*")
_INT32: Final = range(-(2**31), 2**31)
_ANNOTATIONS: Final = METADATA.child("annotations")


def check_annotations(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> Errors:
    """Yield the errors of annotations that mean something to Kubernetes."""
    if not annotations:
        return
    if MIRROR_ANNOTATION in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield fielderror.invalid(_ANNOTATIONS.key(MIRROR_ANNOTATION), annotations[MIRROR_ANNOTATION], detail)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not (_COST.fullmatch(cost) and int(cost) in _INT32):
        yield fielderror.invalid(_ANNOTATIONS.key(_DELETION_COST), cost, "must be a 32bit integer")
    yield from apparmor.check_annotations(annotations, spec)


def check_changed_annotations(annotations: Mapping[str, str], old: Mapping[str, str]) -> Errors:
    """Yield the errors of changes to annotations that are fixed when a pod is created."""
    for key in sorted({*annotations, *old}):
        if annotations.get(key) == old.get(key):
            continue
        act = "remove or update" if key in old else "add"
        if key.startswith(apparmor.PREFIX):
            yield fielderror.forbidden(_ANNOTATIONS.key(key), f"may not {act} AppArmor annotations")
        if key == MIRROR_ANNOTATION:
            yield fielderror.forbidden(_ANNOTATIONS.key(key), f"may not {act} mirror pod annotation")


def check(spec: Mapping[str, Any]) -> Errors:
    """Yield the errors of rules for pods that templates need not keep."""
    if not spec.get("serviceAccountName"):
        for position, volume in enumerate(spec.get("volumes") or ()):
            for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    at = SPEC.child("volumes").item(position).child("projected", "sources").item(index)
                    detail = "must not be specified when serviceAccountName is not set"
                    yield fielderror.forbidden(at.child("serviceAccountToken"), detail)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None:
        yield from constraints.not_negative(grace, SPEC.child("terminationGracePeriodSeconds"))
    for field in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            yield from containers.check_image(container, SPEC.child(field).item(position))


def check_new(spec: Mapping[str, Any]) -> Errors:
    """Yield the errors of fields that a new pod cannot have."""
    if spec.get("ephemeralContainers"):
        yield fielderror.forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield fielderror.forbidden(SPEC.child("nodeName"), detail)
