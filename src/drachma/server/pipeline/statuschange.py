"""Typed status changes: ``transactions.StatusChange``, which components in the same process send.

The result is that of the requests that clients send over HTTP: a patch of ``metadata.finalizers`` and an update of the
status one after the other, or a strategic merge patch of some fields of the status. A typed change names the fields it
touches, so only these are compared and validated.

Admission does not see the change of finalizers (``Operation.FINALIZERS`` in :mod:`drachma.server.pipeline.phases`). The
change of the status goes through all steps of any other status update. If the stored object is not the one that the
component knows, or the finalizers need the rules of a whole update, the general requests decide and refuse the change.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from drachma.api import codec
from drachma.client import patches, transactions
from drachma.server import objectmeta, status
from drachma.server.access import attributes, authorization
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import creation, finalizers, group, intent, update
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services
from drachma.server.surface import verbs
from drachma.server.surface.apisurface import ApiSurface
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record

MergePatch: TypeAlias = Callable[[bytes, Write, options.WriteOptions], update.Change]
"""Makes the change of a strategic merge patch from its body."""

_decode = msgspec.json.Decoder().decode


def plan(services: Services, call: Call, change: transactions.StatusChange, *, merge: MergePatch) -> Plan:
    """Plan a status change; ``call`` is about the status of the object."""
    write_options = options.read_write_options(call.query, "PatchOptions")
    if change.fields:
        write = services.write(call)
        return update.make_plan(
            services, call, MergedStatus(services, change, write, write_options=write_options, merge=merge)
        )
    if change.finalizers is not None:
        # Permission to write the status does not include permission to set finalizers.
        object_call = structs.replace(call, target=structs.replace(call.target, subresource=None))
        authorization.require(services.authoriser, attributes.from_call(object_call))
    replacement = ReplacedStatus(services, change, services.write(call), surface=call.surface, options=write_options)
    return Plan(replacement, lambda outcome: services.answer(200, outcome, call))


class _MergedFields:
    """Sets fields of a status that the stored object does not have yet.

    ``otherwise`` makes the change of the equivalent strategic merge patch, for all other cases.
    """

    def __init__(
        self, change: transactions.StatusChange, write: Write, *, otherwise: Callable[[bytes], update.Change]
    ) -> None:
        self._change = change
        self._write = write
        self._otherwise = otherwise

    def __call__(self, existing: Mapping[str, Any] | None) -> Subject:
        base, names = self._change.base, self._change.fields
        encoded = _decode(codec.encode_part(self._change.status))
        fields = {name: encoded[name] for name in names}
        current = None if existing is None else existing.get("status")
        is_known = existing is not None and existing["metadata"]["uid"] == base.metadata.uid
        if existing is None or not current or not is_known or not fields.keys().isdisjoint(current):
            patch = patches.strategic({"status": fields}, patches.same(base))
            return self._otherwise(patch.data)(existing)
        served = self._write.served
        old = served.strategy.load(existing)
        return served.fast_path.with_status(existing, old, {**current, **fields}, fields=names)


class MergedStatus(update.Update):
    """Intent to set fields of the status of an object."""

    def __init__(
        self,
        services: Services,
        change: transactions.StatusChange,
        write: Write,
        *,
        write_options: options.WriteOptions,
        merge: MergePatch,
    ) -> None:
        merged = _MergedFields(change, write, otherwise=lambda body: merge(body, write, write_options))
        super().__init__(services, merged, write, write_options=write_options)
        self._status_change = change
        self._merge = merge

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        return _make_imprint(
            self, self._status_change, get, services=self._services, options=self._options, specimen=self._make_specimen
        )

    def _make_specimen(self, write: Write, body: bytes, existing: record.Record | None) -> "MergedStatus":
        change = _replace_names(self._status_change, body, existing)
        return MergedStatus(self._services, change, write, write_options=self._options, merge=self._merge)


class ReplacedStatus(intent.UniqueIntent):
    """Intent to replace the status of an object, and its finalizers where the change names them."""

    def __init__(
        self,
        services: Services,
        change: transactions.StatusChange,
        write: Write,
        *,
        surface: ApiSurface,
        options: options.WriteOptions,
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = options.is_dry_run
        self._services = services
        self._change = change
        self._surface = surface
        self._options = options

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        existing = get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None:
            raise status.not_found(write.resource, write.name)
        metadata, base = existing.value["metadata"], self._change.base.metadata
        is_unchanged = (base.uid, base.resource_version) == (metadata["uid"], metadata["resourceVersion"])
        current = metadata.get("finalizers", [])
        after = current if self._change.finalizers is None else list(self._change.finalizers)
        if not is_unchanged or (after != current and not _can_set_finalizers(after, metadata)):
            return self._decide_in_turn(get, existing)
        # Rules compare the new status with the object that has its new finalizers already.
        document = existing.value if after == current else _set_finalizers(existing.value, after)
        old = write.served.strategy.load(document)
        subject = write.served.fast_path.with_status(document, old, self._change.status)
        proposal = Proposal(subject, write, options=self._options, get=get, stored_object=existing, old=old)
        self._services.phases.run(Operation.STATUS, proposal)
        return update.replace(existing, proposal.document())

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        return _make_imprint(
            self, self._change, get, services=self._services, options=self._options, specimen=self._make_specimen
        )

    def _make_specimen(self, write: Write, body: bytes, existing: record.Record | None) -> "ReplacedStatus":
        change = _replace_names(self._change, body, existing)
        return ReplacedStatus(self._services, change, write, surface=self._surface, options=self._options)

    def _decide_in_turn(self, get: intent.Get, existing: record.Record) -> intent.Decision:
        """Decide about finalizers and status one after the other, as about two requests."""
        change, base = self._change, self._change.base.metadata
        update_status = self._update_status()
        steps: list[intent.Intent] = [update_status]
        if change.finalizers is not None and list(change.finalizers) != existing.value["metadata"].get(
            "finalizers", []
        ):
            content: dict[str, Any] = {"finalizers": list(change.finalizers), "uid": base.uid}
            content["resourceVersion"] = base.resource_version
            object_write = structs.replace(self.write, subresource="")
            set_finalizers = finalizers.FinalizersChange(self._services, content, object_write, options=self._options)
            # A claim keeps its finalizer as long as it is allocated.
            steps = [set_finalizers, update_status] if change.finalizers else [update_status, set_finalizers]
        decided = group.Group(get)
        try:
            decided.decide(steps)
        except group.RefusedIntentError as error:
            raise status.StatusError(error.document) from error
        return decided.changes.get(existing.key) or intent.Leave(existing)

    def _update_status(self) -> update.Update:
        write = structs.replace(self.write, verb=verbs.UPDATE)
        changed: Any = self._change.base
        subject = creation.read_object(structs.replace(changed, status=self._change.status), self._surface, write)
        objectmeta.place(subject.metadata, write.namespace)
        objectmeta.check_name(subject.metadata, write.name)
        return update.Update(self._services, lambda _stored: subject.copy(), write, write_options=self._options)


def _make_imprint(
    change_intent: intent.Intent,
    change: transactions.StatusChange,
    get: intent.Get,
    *,
    services: Services,
    options: options.WriteOptions,
    specimen: Callable[[Write, bytes, record.Record | None], intent.Intent],
) -> intent.Imprint | None:
    write = change_intent.write
    key = record.Key(write.resource.key, write.namespace, write.name)
    existing = None if change_intent.is_dry_run else get(key)
    base = change.base.metadata
    if existing is None or not existing.data or base.uid != existing.uid:
        return None
    if not change.fields and base.resource_version != str(existing.revision):
        return None
    marks = write.served.fast_path.mark_status(change.status)
    if marks is None:
        return None
    return update.make_imprint(
        change_intent,
        existing,
        marks,
        codec.encode_part(change.status),
        facts=(change.finalizers, change.fields),
        services=services,
        options=options,
        make_specimen=specimen,
    )


def _replace_names(
    change: transactions.StatusChange, body: bytes, existing: record.Record | None
) -> transactions.StatusChange:
    """Return the same change of another object, with the status in a body."""
    assert existing is not None, "a status belongs to a stored object"
    base = codec.decode_part(existing.data, type(change.base))
    return structs.replace(change, base=base, status=codec.decode_part(body, type(change.status)))


def _set_finalizers(document: Mapping[str, Any], names: list[str]) -> Mapping[str, Any]:
    metadata = {**document["metadata"], "finalizers": names}
    if not names:
        del metadata["finalizers"]
    return {**document, "metadata": metadata}


def _can_set_finalizers(names: list[str], metadata: Mapping[str, Any]) -> bool:
    """Return True if no rule of a whole update concerns these finalizers; those of a deleted object end it."""
    return "deletionTimestamp" not in metadata and finalizers.are_simple(names, metadata)
