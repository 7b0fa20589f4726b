"""What a client says about the object that it means to change or delete: its uid, and its resourceVersion.

Upstream words the refusals of each verb in its own way; they are all here.
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
    """Refuses an update of another object, or of another version than the stored one."""
    metadata, stored, write = proposal.subject.metadata, proposal.stored, proposal.write
    assert stored is not None, "an update is one of something"
    uid = metadata.get("uid", "")
    # A patch is made of the object that is there: its uid is just a field that cannot be changed.
    if write.verb == verbs.UPDATE and uid and uid != stored.uid:
        raise other_uid(uid, write, current=stored.uid)
    version = objectmeta.version(metadata)
    if not version:
        if proposal.strategy.updates_unconditionally(write):
            return
        at, detail = METADATA.child("resourceVersion"), "must be specified for an update"
        causes = [fielderror.invalid(at, 0, detail)]
        raise status.invalid(write.resource.plural, write.name, group=write.resource.group, causes=causes)
    if version != stored.revision:
        raise status.conflict(write.resource, write.name, detail=status.MODIFIED)


def check_absence(proposal: Proposal) -> None:
    """Refuses an update of nothing, where the client means a certain object.

    Whatever the version, there is nothing that it could be one of; it only has to be a good one.
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
    """Refuses the deletion of another object or version than the one that is meant."""
    stored, write, meant = removal.stored, removal.write, removal.options
    if meant.uid is None and meant.resource_version is None:
        return
    if write.resource.group_resource == NAMESPACES:
        _check_namespace(stored, write, meant)
        return
    if meant.uid is not None and meant.uid != stored.uid:
        detail = (
            f"the UID in the precondition ({meant.uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)
    version = _version(stored)
    if meant.resource_version is not None and meant.resource_version != version:
        detail = (
            f"the ResourceVersion in the precondition ({meant.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)


def _check_namespace(stored: record.Record, write: Write, meant: options.DeleteOptions) -> None:
    if meant.uid is not None and meant.uid != stored.uid:
        raise status.conflict(write.resource, write.name, detail=_other("UID", meant.uid, stored.uid))
    version = _version(stored)
    if meant.resource_version is not None and meant.resource_version != version:
        detail = _other("ResourceVersion", meant.resource_version, version)
        raise status.conflict(write.resource, write.name, detail=detail)


def other_uid(uid: str, write: Write, *, current: str) -> status.StatusError:
    """The object under the name is not the one that is meant, as upstream's storage words it."""
    key = record.Key(write.resource.key, write.namespace, write.name)
    detail = _storage_refusal(key, _other("UID", uid, current))
    return status.conflict(write.resource, write.name, detail=detail)


def other_version(version: str, stored: record.Record, write: Write) -> status.StatusError:
    """The same for a version that is not the stored one."""
    detail = _storage_refusal(stored.key, _other("ResourceVersion", version, _version(stored)))
    return status.conflict(write.resource, write.name, detail=detail)


def _version(stored: record.Record) -> str:
    version: str = stored.value["metadata"]["resourceVersion"]
    return version


def _other(what: str, meant: str, current: str) -> str:
    return f"Precondition failed: {what} in precondition: {meant}, {what} in object meta: {current}"


def _storage_refusal(key: record.Key, problem: str) -> str:
    # Nodes have kept their first name in upstream's storage.
    plural = "minions" if key.resource == "nodes" else key.resource.rpartition("/")[2]
    path = "/".join(filter(None, ("/registry", plural, key.namespace, key.name)))
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"
