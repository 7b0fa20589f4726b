"""What the server changes in an object before it checks it: status reset, generation, metadata kept, fields dropped."""

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


def for_create(given: _ObjectT, context: Context) -> _ObjectT:
    """A new object as it would be stored, if it is valid: no status, first generation, nothing that is off."""
    gates = context.gates
    metadata = fresh(given.metadata)
    prepared: meta.Object
    match given:
        case resourceclaim.ResourceClaim():
            claim_spec = disabledfields.drop_from_claim(given.spec, old=None, gates=gates)
            prepared = structs.replace(given, metadata=metadata, spec=claim_spec, status=resourceclaim.ABSENT_STATUS)
        case deviceclass.DeviceClass():
            spec = disabledfields.drop_from_class(given.spec, old=None, gates=gates)
            prepared = structs.replace(given, metadata=_generation(metadata, 1), spec=spec)
        case resourceclaimtemplate.ResourceClaimTemplate():
            template_spec = _template_spec(given.spec, old=None, context=context)
            prepared = structs.replace(given, metadata=metadata, spec=template_spec)
        case resourceslice.ResourceSlice():
            slice_spec = disabledfields.drop_from_slice(given.spec, old=None, gates=gates)
            prepared = structs.replace(given, metadata=_generation(metadata, 1), spec=slice_spec)
        case devicetaintrule.DeviceTaintRule():
            metadata = _generation(metadata, 1)
            prepared = structs.replace(given, metadata=metadata, status=_ABSENT_TAINT_RULE.status)
        case _:
            prepared = alpha_rules.with_status_of(structs.replace(given, metadata=metadata), None)
    return prepared


def for_update(given: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """A changed object; its status stays, and its generation counts changes of the spec."""
    if (metadata := _generation(given.metadata, old.metadata.generation)) is not given.metadata:
        given = structs.replace(given, metadata=metadata)
    prepared: meta.Object = given
    match given, old:
        case deviceclass.DeviceClass(), deviceclass.DeviceClass():
            spec = disabledfields.drop_from_class(given.spec, old=old.spec, gates=context.gates)
            prepared = _counted(structs.replace(given, spec=spec), old, is_changed=spec != old.spec)
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            claim_spec = disabledfields.drop_from_claim(given.spec, old=old.spec, gates=context.gates)
            prepared = structs.replace(given, spec=claim_spec, status=old.status)
        case resourceclaimtemplate.ResourceClaimTemplate(), resourceclaimtemplate.ResourceClaimTemplate():
            prepared = structs.replace(given, spec=_template_spec(given.spec, old=old.spec, context=context))
        case resourceslice.ResourceSlice(), resourceslice.ResourceSlice():
            # The generation counts what was asked for, before anything is dropped.
            counted = _counted(given, old, is_changed=given.spec != old.spec)
            slice_spec = disabledfields.drop_from_slice(given.spec, old=old.spec, gates=context.gates)
            prepared = structs.replace(counted, spec=slice_spec)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            rule_spec = _taint_time(given.spec, old.spec, context)
            changed = structs.replace(given, spec=rule_spec, status=old.status)
            prepared = _counted(changed, old, is_changed=rule_spec != old.spec)
        case _:
            prepared = alpha_rules.with_status_of(given, old)
    return _kept_metadata(prepared, old)  # type: ignore[return-value]


def for_status_update(given: _ObjectT, old: _ObjectT, context: Context) -> _ObjectT:
    """An object with a changed status; the rest stays."""
    prepared: meta.Object = given
    match given, old:
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            status = disabledfields.drop_from_claim_status(given.status, old=old, gates=context.gates)
            status = _without_stale_devices(status, old.status, context)
            prepared = structs.replace(given, metadata=_metadata_of(given, old), spec=old.spec, status=status)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            prepared = structs.replace(given, metadata=_metadata_of(given, old), spec=old.spec)
        case _:
            prepared = alpha_rules.with_spec_of(structs.replace(given, metadata=_metadata_of(given, old)), old)
    return _kept_metadata(prepared, old)  # type: ignore[return-value]


def _template_spec(
    given: resourceclaimtemplate.ResourceClaimTemplateSpec,
    *,
    old: resourceclaimtemplate.ResourceClaimTemplateSpec | None,
    context: Context,
) -> resourceclaimtemplate.ResourceClaimTemplateSpec:
    spec = disabledfields.drop_from_claim(given.spec, old=old.spec if old is not None else None, gates=context.gates)
    return structs.replace(given, spec=spec)


def _taint_time(
    new: devicetaintrule.DeviceTaintRuleSpec, old: devicetaintrule.DeviceTaintRuleSpec, context: Context
) -> devicetaintrule.DeviceTaintRuleSpec:
    """A new effect counts from now, unless the client says since when; tolerations are for a time."""
    if new.taint.effect == old.taint.effect or new.taint.time_added != old.taint.time_added:
        return new
    now = context.now.replace(microsecond=0)
    return structs.replace(new, taint=structs.replace(new.taint, time_added=now))


def _without_stale_devices(
    new: resourceclaim.ResourceClaimStatus, old: resourceclaim.ResourceClaimStatus, context: Context
) -> resourceclaim.ResourceClaimStatus:
    """What drivers said about devices goes when the devices go, so that clients need not know about it."""
    if new.devices is ABSENT_TUPLE or not (context.gates.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS) or old.devices):
        return new
    gone = set(_allocated(old)) - set(_allocated(new))
    kept = tuple(device for device in new.devices if identity.share_of(device) not in gone)
    return structs.replace(new, devices=kept or ABSENT_TUPLE)


def _allocated(status: resourceclaim.ResourceClaimStatus) -> Iterable[identity.SharedDeviceID]:
    results = status.allocation.devices.results if status.allocation is not None else ()
    return map(identity.share_of, results)


def fresh(metadata: meta.ObjectMeta) -> meta.ObjectMeta:
    """Metadata of a new object: nobody can create one that is being deleted."""
    deletion = metadata.deletion_timestamp, metadata.deletion_grace_period_seconds
    if metadata.self_link is ABSENT_TEXT and deletion == (None, None):
        return metadata
    return structs.replace(metadata, self_link=ABSENT_TEXT, deletion_timestamp=None, deletion_grace_period_seconds=None)


def _generation(metadata: meta.ObjectMeta, generation: int) -> meta.ObjectMeta:
    wanted = generation or ABSENT_INT
    return metadata if metadata.generation is wanted else structs.replace(metadata, generation=wanted)


def _counted(given: _ObjectT, old: meta.Object, *, is_changed: bool) -> _ObjectT:
    if not is_changed:
        return given
    return structs.replace(given, metadata=_generation(given.metadata, old.metadata.generation + 1))


def _kept_metadata(given: meta.Object, old: meta.Object) -> meta.Object:
    """What no update can change: it is not refused, but put back."""
    new, before = given.metadata, old.metadata
    grace = new.deletion_grace_period_seconds
    is_kept = (
        new.uid
        and new.creation_timestamp == before.creation_timestamp
        and new.deletion_timestamp == before.deletion_timestamp
        and grace == before.deletion_grace_period_seconds
    )
    if is_kept:
        return given
    metadata = structs.replace(
        new,
        uid=new.uid or before.uid,
        creation_timestamp=before.creation_timestamp or new.creation_timestamp,
        deletion_timestamp=before.deletion_timestamp or new.deletion_timestamp,
        deletion_grace_period_seconds=before.deletion_grace_period_seconds if grace is None else grace,
    )
    return structs.replace(given, metadata=metadata)


def _metadata_of(given: meta.Object, old: meta.Object) -> meta.ObjectMeta:
    """Metadata in a write of the status: only what tells the object and its version is the client's."""
    before = old.metadata
    return structs.replace(
        given.metadata,
        deletion_timestamp=before.deletion_timestamp,
        generation=before.generation,
        self_link=before.self_link,
        labels=before.labels,
        annotations=before.annotations,
        finalizers=before.finalizers,
        owner_references=before.owner_references,
    )
