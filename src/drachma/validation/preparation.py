"""Preparation of objects before they are checked: status, generation, stored metadata, fields of disabled features."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import structs

from drachma.api import deviceclass, devicetaintrule, meta, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api.gates import Gate
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.claims import identity
from drachma.validation import disabledfields
from drachma.validation.context import Context

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)
_NUMBERED: Final = (deviceclass.DeviceClass, devicetaintrule.DeviceTaintRule, resourceslice.ResourceSlice)
"""Kinds whose generation counts changes of the spec."""

_WITH_DISABLED_FIELDS: Final = (
    deviceclass.DeviceClass,
    resourceclaim.ResourceClaim,
    resourceclaimtemplate.ResourceClaimTemplate,
    resourceslice.ResourceSlice,
)

_ABSENT_STATUSES: Final[Mapping[type[meta.Object], Any]] = {
    alpha.ResourceClaim: alpha.ABSENT_STATUS,
    devicetaintrule.DeviceTaintRule: devicetaintrule.DeviceTaintRule().status,
    resourceclaim.ResourceClaim: resourceclaim.ABSENT_STATUS,
}
"""Statuses of new objects, for kinds that have a status."""


def prepare_create(value: _ObjectT, context: Context) -> _ObjectT:
    """Return a new object as it would be stored: without status and disabled fields, with its first generation."""
    metadata = fresh(value.metadata)
    changes: dict[str, Any] = {"metadata": _generation(metadata, 1) if isinstance(value, _NUMBERED) else metadata}
    if isinstance(value, _WITH_DISABLED_FIELDS):
        changes["spec"] = disabledfields.drop(value.spec, old=None, gates=context.gates)
    if type(value) in _ABSENT_STATUSES:
        changes["status"] = _ABSENT_STATUSES[type(value)]
    return structs.replace(value, **changes)


def prepare_update(value: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """Return a changed object with its stored status; its generation counts changes of the spec."""
    old_object: Any = old
    changes: dict[str, Any] = {}
    generation = old.metadata.generation
    if isinstance(value, _WITH_DISABLED_FIELDS):
        changes["spec"] = disabledfields.drop(value.spec, old=old_object.spec, gates=context.gates)
    elif isinstance(value, devicetaintrule.DeviceTaintRule):
        changes["spec"] = _taint_time(value.spec, old_object.spec, context)
    if type(value) in _ABSENT_STATUSES:
        changes["status"] = old_object.status
    if isinstance(value, _NUMBERED):
        # The generation of a slice counts what was asked for, before anything is dropped.
        new_spec = value.spec if isinstance(value, resourceslice.ResourceSlice) else changes["spec"]
        generation += new_spec != old_object.spec
    prepared = structs.replace(value, metadata=_generation(value.metadata, generation), **changes)
    return _restore_metadata(prepared, old)


def prepare_status_update(value: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """Return an object with a changed status and its stored spec and metadata."""
    old_object: Any = old
    changes: dict[str, Any] = {"spec": old_object.spec} if type(value) in _ABSENT_STATUSES else {}
    if isinstance(value, resourceclaim.ResourceClaim):
        status = disabledfields.drop_from_claim_status(value.status, old=old_object, gates=context.gates)
        changes["status"] = _drop_stale_devices(status, old_object.status, context)
    return _restore_metadata(structs.replace(value, metadata=_status_metadata(value, old), **changes), old)


def _taint_time(
    new: devicetaintrule.DeviceTaintRuleSpec, old: devicetaintrule.DeviceTaintRuleSpec, context: Context
) -> devicetaintrule.DeviceTaintRuleSpec:
    """Return a spec whose taint starts now if its effect is new, because tolerations may be limited in time."""
    if new.taint.effect == old.taint.effect or new.taint.time_added != old.taint.time_added:
        return new
    now = context.now.replace(microsecond=0)
    return structs.replace(new, taint=structs.replace(new.taint, time_added=now))


def _drop_stale_devices(
    new: resourceclaim.ResourceClaimStatus, old: resourceclaim.ResourceClaimStatus, context: Context
) -> resourceclaim.ResourceClaimStatus:
    """Return a status without reports on devices that are no longer allocated, so that clients need not remove them."""
    if new.devices is ABSENT_TUPLE or not (context.gates.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS) or old.devices):
        return new
    removed = set(_allocated(old)) - set(_allocated(new))
    reports = tuple(device for device in new.devices if identity.share_of(device) not in removed)
    return structs.replace(new, devices=reports or ABSENT_TUPLE)


def _allocated(status: resourceclaim.ResourceClaimStatus) -> Iterable[identity.SharedDeviceID]:
    results = status.allocation.devices.results if status.allocation is not None else ()
    return map(identity.share_of, results)


def fresh(metadata: meta.ObjectMeta) -> meta.ObjectMeta:
    """Return the metadata of a new object, which is not being deleted."""
    deletion = metadata.deletion_timestamp, metadata.deletion_grace_period_seconds
    if metadata.self_link is ABSENT_TEXT and deletion == (None, None):
        return metadata
    return structs.replace(metadata, self_link=ABSENT_TEXT, deletion_timestamp=None, deletion_grace_period_seconds=None)


def _generation(metadata: meta.ObjectMeta, generation: int) -> meta.ObjectMeta:
    number = generation or ABSENT_INT
    return metadata if metadata.generation is number else structs.replace(metadata, generation=number)


def _restore_metadata(value: _ObjectT, old: meta.Object) -> _ObjectT:
    """Return an object with the metadata that no update changes: it is restored, and the update is not refused."""
    new, before = value.metadata, old.metadata
    grace = new.deletion_grace_period_seconds
    is_kept = (
        new.uid
        and new.creation_timestamp == before.creation_timestamp
        and new.deletion_timestamp == before.deletion_timestamp
        and grace == before.deletion_grace_period_seconds
    )
    if is_kept:
        return value
    metadata = structs.replace(
        new,
        uid=new.uid or before.uid,
        creation_timestamp=before.creation_timestamp or new.creation_timestamp,
        deletion_timestamp=before.deletion_timestamp or new.deletion_timestamp,
        deletion_grace_period_seconds=before.deletion_grace_period_seconds if grace is None else grace,
    )
    return structs.replace(value, metadata=metadata)


def _status_metadata(value: meta.Object, old: meta.Object) -> meta.ObjectMeta:
    """Return the metadata of a write of the status: clients only choose the object and its version."""
    before = old.metadata
    return structs.replace(
        value.metadata,
        deletion_timestamp=before.deletion_timestamp,
        generation=before.generation,
        self_link=before.self_link,
        labels=before.labels,
        annotations=before.annotations,
        finalizers=before.finalizers,
        owner_references=before.owner_references,
    )
