"""Rules for volumes of a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, persistentvolumeclaim, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC
from drachma.values import names, quantity

SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""What a volume can be; it is one of them."""

_POLICIES: Final = ("Delete", "Recycle", "Retain")
_MODES: Final = ("Block", "Filesystem")
_IMMUTABLE: Final = "spec.persistentvolumesource is immutable after creation"


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a volume."""
    modes, at = spec.get("accessModes") or (), SPEC.child("accessModes")
    if not modes:
        yield fielderror.required(at)
    yield from persistentvolumeclaim.check_access_modes(modes, at)
    yield from _capacity(spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _POLICIES:
        at = SPEC.child("persistentVolumeReclaimPolicy")
        yield fielderror.not_supported(at, rendering.named(policy), _POLICIES)
    sources = [name for name in SOURCES if spec.get(name) is not None]
    if not sources:
        yield fielderror.required(SPEC, "must specify a volume type")
    for name in sources[1:]:
        yield fielderror.forbidden(SPEC.child(name), "may not specify more than 1 volume type")
    for field in ("storageClassName", "volumeAttributesClassName"):
        chosen = spec.get(field)
        if chosen:
            yield from fielderror.problems(SPEC.child(field), chosen, names.dns1123_subdomain(chosen))
    if "local" in sources and not ((spec.get("nodeAffinity") or {}).get("required")):
        yield fielderror.required(SPEC.child("nodeAffinity"), "Local volume requires node affinity")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _MODES:
        yield fielderror.not_supported(SPEC.child("volumeMode"), rendering.named(mode), _MODES)


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What a volume is, is decided once."""
    if any(spec.get(name) != old.get(name) for name in SOURCES):
        yield fielderror.forbidden(SPEC.child("persistentvolumesource"), _IMMUTABLE)
    if spec.get("volumeMode") != old.get("volumeMode"):
        at = SPEC.child("volumeMode")
        yield fielderror.invalid(at, rendering.named(spec.get("volumeMode") or ""), "field is immutable")


def _capacity(capacity: Mapping[str, Any]) -> Errors:
    at = SPEC.child("capacity")
    if not capacity:
        yield fielderror.required(at)
        return
    if list(capacity) != ["storage"]:
        yield fielderror.not_supported(at, rendering.wire(dict(capacity)), ("storage",))
    for name, amount in capacity.items():
        if not quantity.Quantity.parse(str(amount)) > quantity.Quantity.parse("0"):
            yield fielderror.invalid(at.key(name), str(amount), "must be greater than zero")
