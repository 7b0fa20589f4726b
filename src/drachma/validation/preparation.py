"""Preparation of objects before they are checked: status, generation, stored metadata, fields of disabled features."""

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec import structs

from drachma.api import deviceclass, devicetaintrule, meta, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api.gates import Gate
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE
from drachma.claims import identity
from drachma.validation import disabledfields
from drachma.validation.context import Context
from drachma.validation.v1alpha2 import rules as alpha_rules

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)
_ABSENT_TAINT_RULE: Final = devicetaintrule.DeviceTaintRule()


def prepare_create(value: _ObjectT, context: Context) -> _ObjectT:
    """Return a new object as it would be stored: without status and disabled fields, with its first generation."""
    gates = context.gates
    metadata = fresh(value.metadata)
    prepared: meta.Object
    match value:
        case resourceclaim.ResourceClaim():
            claim_spec = disabledfields.drop(value.spec, disabledfields.CLAIM, old=None, gates=gates)
            prepared = structs.replace(value, metadata=metadata, spec=claim_spec, status=resourceclaim.ABSENT_STATUS)
        case deviceclass.DeviceClass():
            spec = disabledfields.drop(value.spec, disabledfields.CLASS, old=None, gates=gates)
            prepared = structs.replace(value, metadata=_generation(metadata, 1), spec=spec)
        case resourceclaimtemplate.ResourceClaimTemplate():
            template_spec = _template_spec(value.spec, old=None, context=context)
            prepared = structs.replace(value, metadata=metadata, spec=template_spec)
        case resourceslice.ResourceSlice():
            slice_spec = disabledfields.drop(value.spec, disabledfields.SLICE, old=None, gates=gates)
            prepared = structs.replace(value, metadata=_generation(metadata, 1), spec=slice_spec)
        case devicetaintrule.DeviceTaintRule():
            metadata = _generation(metadata, 1)
            prepared = structs.replace(value, metadata=metadata, status=_ABSENT_TAINT_RULE.status)
        case _:
            prepared = alpha_rules.restore_status(structs.replace(value, metadata=metadata), None)
    return prepared


def prepare_update(value: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """Return a changed object with its stored status; its generation counts changes of the spec."""
    if (metadata := _generation(value.metadata, old.metadata.generation)) is not value.metadata:
        value = structs.replace(value, metadata=metadata)
    prepared: meta.Object = value
    match value, old:
        case deviceclass.DeviceClass(), deviceclass.DeviceClass():
            spec = disabledfields.drop(value.spec, disabledfields.CLASS, old=old.spec, gates=context.gates)
            prepared = _count_change(structs.replace(value, spec=spec), old, is_changed=spec != old.spec)
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            claim_spec = disabledfields.drop(value.spec, disabledfields.CLAIM, old=old.spec, gates=context.gates)
            prepared = structs.replace(value, spec=claim_spec, status=old.status)
        case resourceclaimtemplate.ResourceClaimTemplate(), resourceclaimtemplate.ResourceClaimTemplate():
            prepared = structs.replace(value, spec=_template_spec(value.spec, old=old.spec, context=context))
        case resourceslice.ResourceSlice(), resourceslice.ResourceSlice():
            # The generation counts what was asked for, before anything is dropped.
            numbered = _count_change(value, old, is_changed=value.spec != old.spec)
            slice_spec = disabledfields.drop(value.spec, disabledfields.SLICE, old=old.spec, gates=context.gates)
            prepared = structs.replace(numbered, spec=slice_spec)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            rule_spec = _taint_time(value.spec, old.spec, context)
            changed = structs.replace(value, spec=rule_spec, status=old.status)
            prepared = _count_change(changed, old, is_changed=rule_spec != old.spec)
        case _:
            prepared = alpha_rules.restore_status(value, old)
    return _restore_metadata(prepared, old)  # type: ignore[return-value]


def prepare_status_update(value: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """Return an object with a changed status and its stored spec and metadata."""
    prepared: meta.Object = value
    match value, old:
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            status = disabledfields.drop_from_claim_status(value.status, old=old, gates=context.gates)
            status = _drop_stale_devices(status, old.status, context)
            prepared = structs.replace(value, metadata=_status_metadata(value, old), spec=old.spec, status=status)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            prepared = structs.replace(value, metadata=_status_metadata(value, old), spec=old.spec)
        case _:
            prepared = alpha_rules.restore_spec(structs.replace(value, metadata=_status_metadata(value, old)), old)
    return _restore_metadata(prepared, old)  # type: ignore[return-value]


def _template_spec(
    value: resourceclaimtemplate.ResourceClaimTemplateSpec,
    *,
    old: resourceclaimtemplate.ResourceClaimTemplateSpec | None,
    context: Context,
) -> resourceclaimtemplate.ResourceClaimTemplateSpec:
    spec = disabledfields.drop(
        value.spec, disabledfields.CLAIM, old=old.spec if old is not None else None, gates=context.gates
    )
    return structs.replace(value, spec=spec)


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


def _count_change(value: _ObjectT, old: meta.Object, *, is_changed: bool) -> _ObjectT:
    if not is_changed:
        return value
    return structs.replace(value, metadata=_generation(value.metadata, old.metadata.generation + 1))


def _restore_metadata(value: meta.Object, old: meta.Object) -> meta.Object:
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
