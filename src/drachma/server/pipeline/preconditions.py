"""Preconditions of updates and deletions: uid and resourceVersion of the object.

Upstream words the refusals of each verb differently; all of them are here.
"""

from drachma.server import objectmeta, status
from drachma.server.admission.namespacelifecycle import NAMESPACES
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.calls import options
from drachma.server.surface import verbs
from drachma.server.surface.strategy import Write
from drachma.store import record
from drachma.validation import fielderror
from drachma.validation.path import METADATA


def check(proposal: Proposal) -> None:
    """Refuse an update of another object, or of another version than the stored one."""
    metadata, existing, write = proposal.subject.metadata, proposal.stored, proposal.write
    assert existing is not None, "an update has a stored object"
    uid = metadata.get("uid", "")
    # A patch applies to the stored object: its uid is just an immutable field.
    if write.verb == verbs.UPDATE and uid and uid != existing.uid:
        raise other_uid(uid, write, current=existing.uid)
    version = objectmeta.version(metadata)
    if not version:
        # An object that the same commit creates has no version yet.
        if proposal.strategy.updates_unconditionally(write) or existing.revision == 0:
            return
        at, detail = METADATA.child("resourceVersion"), "must be specified for an update"
        causes = [fielderror.invalid(at, 0, detail)]
        raise status.invalid(write.resource.plural, write.name, group=write.resource.group, causes=causes)
    if version != existing.revision:
        raise status.conflict(write.resource, write.name, detail=status.MODIFIED)


def check_absence(proposal: Proposal) -> None:
    """Refuse an update of an absent object if the client expects a certain one.

    A resourceVersion must be well-formed, and then no object can have it.
    """
    metadata, write = proposal.subject.metadata, proposal.write
    uid = metadata.get("uid", "")
    if uid and write.verb == verbs.UPDATE:
        raise other_uid(uid, write, current="")
    if uid:
        detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(write.resource, write.name, detail=detail)
    objectmeta.version(metadata)


def check_removal(removal: Removal) -> None:
    """Refuse the deletion of another object or version than the expected one."""
    existing, write, expected = removal.stored, removal.write, removal.options
    if expected.uid is None and expected.resource_version is None:
        return
    if write.resource.group_resource == NAMESPACES:
        _check_namespace(existing, write, expected)
        return
    if expected.uid is not None and expected.uid != existing.uid:
        detail = (
            f"the UID in the precondition ({expected.uid}) does not match the UID in record ({existing.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)
    version = _version(existing)
    if expected.resource_version is not None and expected.resource_version != version:
        detail = (
            f"the ResourceVersion in the precondition ({expected.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)


def _check_namespace(existing: record.Record, write: Write, preconditions: options.DeleteOptions) -> None:
    if preconditions.uid is not None and preconditions.uid != existing.uid:
        raise status.conflict(write.resource, write.name, detail=_mismatch("UID", preconditions.uid, existing.uid))
    version = _version(existing)
    if preconditions.resource_version is not None and preconditions.resource_version != version:
        detail = _mismatch("ResourceVersion", preconditions.resource_version, version)
        raise status.conflict(write.resource, write.name, detail=detail)


def other_uid(uid: str, write: Write, *, current: str) -> status.StatusError:
    """Return the refusal for an object with another uid than expected, in the words of upstream's storage."""
    key = record.Key(write.resource.key, write.namespace, write.name)
    detail = _storage_refusal(key, _mismatch("UID", uid, current))
    return status.conflict(write.resource, write.name, detail=detail)


def other_version(version: str, existing: record.Record, write: Write) -> status.StatusError:
    """Return the refusal for an object with another version than expected."""
    detail = _storage_refusal(existing.key, _mismatch("ResourceVersion", version, _version(existing)))
    return status.conflict(write.resource, write.name, detail=detail)


def _version(existing: record.Record) -> str:
    version: str = existing.value["metadata"]["resourceVersion"]
    return version


def _mismatch(what: str, precondition: str, current: str) -> str:
    return f"Precondition failed: {what} in precondition: {precondition}, {what} in object meta: {current}"


def _storage_refusal(key: record.Key, problem: str) -> str:
    # Upstream's storage still uses the first name of nodes.
    plural = "minions" if key.resource == "nodes" else key.resource.rpartition("/")[2]
    path = "/".join(filter(None, ("/registry", plural, key.namespace, key.name)))
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"
