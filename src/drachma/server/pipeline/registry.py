"""The registry: create, read, update and patch objects in the store, with the semantics of the Kubernetes API.

The verbs' handlers call it with decoded requests; what is particular to a kind is asked of its strategy. It keeps
upstream's order of steps, because that decides which of several errors a client sees. Deletion is in
:mod:`drachma.server.pipeline.deletion`, lists are in :mod:`drachma.server.reads.listing`.
"""

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.server import documents, objectmeta, status
from drachma.server.calls import options
from drachma.server.kinds.strategy import Strategy, Subject, Write
from drachma.server.ownership import fieldmanagers
from drachma.server.presentation import encoding
from drachma.server.surface import resources
from drachma.store import protocol, record
from drachma.validation import fielderror
from drachma.validation.path import METADATA
from drachma.values import quotation

ATTEMPTS: Final = 100
"""How often a write is decided anew because another one came first; each time one of them succeeds."""

_NAMESPACES: Final = "namespaces"
_TERMINATING: Final = "Terminating"

Change: TypeAlias = Callable[[Mapping[str, Any] | None], Subject]
"""Makes the new object from the stored document, or from None where there is none; may be called again."""


class Outcome(NamedTuple):
    """What a write left: in the store, or on a dry run, or where the object is gone, just a document."""

    stored: record.Record | None
    document: Mapping[str, Any]
    is_created: bool = False


class Registry:
    """All served resources on top of one store."""

    def __init__(
        self,
        store: protocol.Store,
        strategies: Mapping[str, Strategy],
        *,
        clock: Callable[[], datetime],
        chance: random.Random,
    ) -> None:
        self.store: Final = store
        self.clock: Final = clock
        self._strategies = strategies
        self._chance = chance
        self._encoders = {
            resource.key: encoding.Encoder(resource, strategies[resource.key])
            for resource in resources.CATALOG.resources
        }

    def strategy(self, resource: resources.Resource) -> Strategy:
        return self._strategies[resource.key]

    def encoder(self, resource: resources.Resource) -> encoding.Encoder:
        return self._encoders[resource.key]

    def get(self, resource: resources.Resource, namespace: str, *, name: str) -> record.Record:
        """The stored object; a 404 where there is none."""
        found = self.store.get(record.Key(resource.key, namespace, name))
        if found is None:
            raise status.not_found(resource, name)
        return found

    async def create(self, subject: Subject, write: Write, *, wanted: options.WriteOptions) -> Outcome:
        """A new object, with a generated name where it asks for one."""
        metadata = subject.metadata
        objectmeta.wipe_system_fields(metadata)
        objectmeta.place(metadata, write.namespace)
        objectmeta.merge_owners(metadata, write.warnings)
        self.admit_namespace(write, name=metadata.get("name", ""))
        strategy = self.strategy(write.resource)
        prefix = metadata.get("generateName", "")
        if not prefix or metadata.get("name"):
            return await self._create(subject, write, strategy=strategy, wanted=wanted)
        refusal: status.StatusError | None = None
        for _ in range(objectmeta.GENERATE_ATTEMPTS):
            candidate = subject.copy()
            candidate.metadata["name"] = objectmeta.generate_name(prefix, chance=self._chance)
            try:
                return await self._create(candidate, write, strategy=strategy, wanted=wanted)
            except status.StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                refusal = error
        assert refusal is not None, "every attempt but a good one is refused"
        raise refusal

    async def update(
        self, change: Change, write: Write, *, wanted: options.WriteOptions, is_apply: bool = False
    ) -> Outcome:
        """The object after a change. Server-side apply makes a new object of nothing, and has settled ownership.

        Decided again as long as other writes come first, so a client only hears of a conflict when it named the
        version it wants to change.
        """
        key = record.Key(write.resource.key, write.namespace, write.name)
        strategy = self.strategy(write.resource)
        creates = not write.subresource and (is_apply or strategy.traits.creates_on_update)
        for _ in range(ATTEMPTS):
            stored = self.store.get(key)
            if stored is None and not creates:
                raise status.not_found(write.resource, write.name)
            subject = change(None if stored is None else stored.value)
            objectmeta.place(subject.metadata, write.namespace)
            objectmeta.check_name(subject.metadata, write.name)
            objectmeta.merge_owners(subject.metadata, write.warnings)
            if stored is None:
                try:
                    return await self._create_by_update(subject, write, strategy=strategy, wanted=wanted)
                except status.StatusError as error:
                    if error.reason == "AlreadyExists":
                        continue
                    raise
            outcome = await self._update(subject, stored, write, strategy=strategy, wanted=wanted)
            if outcome is not None:
                return outcome
        raise status.conflict(write.resource, write.name, detail=status.MODIFIED)

    def admit_namespace(self, write: Write, *, name: str) -> None:
        """Refuses new objects in a namespace that does not exist or goes away."""
        if not write.namespace or not write.resource.namespaced:
            return
        namespace = self.store.get(record.Key(_NAMESPACES, "", write.namespace))
        if namespace is None:
            raise status.not_found(_NAMESPACE_RESOURCE, write.namespace)
        if (namespace.value.get("status") or {}).get("phase") == _TERMINATING:
            detail = f"unable to create new content in namespace {write.namespace} because it is being terminated"
            refusal = status.forbidden(write.resource, name, detail=detail)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {write.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            details = {**refusal.document["details"], "causes": [cause]}
            raise status.StatusError({**refusal.document, "details": details})

    # Creating

    async def _create_by_update(
        self, subject: Subject, write: Write, *, strategy: Strategy, wanted: options.WriteOptions
    ) -> Outcome:
        uid = subject.metadata.get("uid")
        if uid:
            detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise status.conflict(write.resource, write.name, detail=detail)
        subject.metadata.pop("resourceVersion", None)
        objectmeta.wipe_system_fields(subject.metadata)
        self.admit_namespace(write, name=write.name)
        return await self._create(subject, write, strategy=strategy, wanted=wanted)

    async def _create(
        self, subject: Subject, write: Write, *, strategy: Strategy, wanted: options.WriteOptions
    ) -> Outcome:
        metadata = subject.metadata
        uid = objectmeta.generate_uid(self._chance)
        objectmeta.fill_system_fields(metadata, uid=uid, now=write.now)
        fieldmanagers.drop_unreadable(metadata, {})
        is_completed = strategy.traits.is_completed and not subject.is_owned
        if is_completed:
            draft = fieldmanagers.created(strategy.document(subject), write, strategy=strategy, wanted=wanted)
            metadata.pop("managedFields", None)
            if "managedFields" in draft["metadata"]:
                metadata["managedFields"] = draft["metadata"]["managedFields"]
        strategy.create(subject, write)
        name = subject.metadata.get("name", "")
        document = strategy.document(subject)
        if not subject.is_owned and not is_completed:
            document = fieldmanagers.created(document, write, strategy=strategy, wanted=wanted)
        key = record.Key(write.resource.key, write.namespace, name)
        is_generated = bool(document["metadata"].get("generateName"))
        if wanted.is_dry_run:
            if self.store.get(key) is not None:
                raise self._already_exists(key, write, is_generated=is_generated)
            return Outcome(None, document, is_created=True)
        # Differs from upstream: a resourceVersion that a client sends along is ignored and not answered with a 500.
        try:
            stored = await self.store.create(key, encoding.stamped(document), uid=uid)
        except errors.AlreadyExistsError:
            raise self._already_exists(key, write, is_generated=is_generated) from None
        return Outcome(stored, document, is_created=True)

    def _already_exists(self, key: record.Key, write: Write, *, is_generated: bool) -> status.StatusError:
        found = self.store.get(key)
        is_being_deleted = found is not None and "deletionTimestamp" in found.value["metadata"]
        return status.already_exists(
            write.resource, key.name, is_being_deleted=is_being_deleted, is_generated=is_generated
        )

    # Updating

    async def _update(
        self, subject: Subject, stored: record.Record, write: Write, *, strategy: Strategy, wanted: options.WriteOptions
    ) -> Outcome | None:
        """The outcome of one attempt; None if another write came first."""
        metadata, before = subject.metadata, stored.value
        self._check_preconditions(metadata, stored, write, strategy=strategy)
        old = strategy.load(before)
        objectmeta.carry_over(metadata, old.metadata)
        fieldmanagers.drop_unreadable(metadata, old.metadata)
        # An update without a version is one of whatever version is there.
        metadata["resourceVersion"] = old.metadata["resourceVersion"]
        if write.subresource:
            strategy.update_status(subject, old, write)
        else:
            strategy.update(subject, old, write)
        document = strategy.document(subject)
        if subject.is_owned:
            document = fieldmanagers.settled(document, before)
        else:
            document = fieldmanagers.updated(document, before, write, strategy=strategy, wanted=wanted)
        if objectmeta.is_finalized(document["metadata"], old.metadata) and not _holds_back(document):
            return await self._delete_finalized(document, stored, wanted=wanted)
        if wanted.is_dry_run:
            return Outcome(None, document)
        if documents.same(document, before):
            return Outcome(stored, before)
        try:
            changed = await self.store.update(stored.key, encoding.stamped(document), revision=stored.revision)
        except (errors.ConflictError, errors.NotFoundError):
            return None
        return Outcome(changed, document)

    def _check_preconditions(
        self, metadata: objectmeta.Metadata, stored: record.Record, write: Write, *, strategy: Strategy
    ) -> None:
        uid = metadata.get("uid", "")
        if uid and uid != stored.uid:
            detail = storage_refusal(
                stored.key, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
            )
            raise status.conflict(write.resource, write.name, detail=detail)
        version = metadata.get("resourceVersion", "")
        if version in ("", "0"):
            if strategy.updates_unconditionally(write):
                return
            at, detail = METADATA.child("resourceVersion"), "must be specified for an update"
            causes = [fielderror.invalid(at, 0, detail)]
            raise status.invalid(write.resource.plural, write.name, group=write.resource.group, causes=causes)
        if not (version.isascii() and version.isdigit()):
            problem = f"strconv.ParseUint: parsing {quotation.quote(version)}: invalid syntax"
            raise status.bad_request(f"metadata.resourceVersion: {problem}")
        if int(version) != stored.revision:
            raise status.conflict(write.resource, write.name, detail=status.MODIFIED)

    async def _delete_finalized(
        self, document: dict[str, Any], stored: record.Record, *, wanted: options.WriteOptions
    ) -> Outcome | None:
        """The last finalizer is gone: the object goes, and the client is shown what it asked for."""
        if not wanted.is_dry_run:
            try:
                await self.store.delete(stored.key, revision=stored.revision, draft=record.stamped_deletion)
            except errors.ConflictError:
                return None
            except errors.NotFoundError:
                pass
        return Outcome(None, document)


def storage_refusal(key: record.Key, problem: str) -> str:
    """How upstream words a refusal of its storage."""
    plural = key.resource.rpartition("/")[2]
    path = "/".join(filter(None, ("/registry", plural, key.namespace, key.name)))
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"


def _holds_back(document: Mapping[str, Any]) -> bool:
    """A namespace has a second list of finalizers, which its controller works through."""
    return document["kind"] == "Namespace" and bool((document.get("spec") or {}).get("finalizers"))


def _namespace_resource() -> resources.Resource:
    found = resources.CATALOG.find("", "v1", plural=_NAMESPACES)
    assert found is not None, "namespaces are always served"
    return found


_NAMESPACE_RESOURCE: Final = _namespace_resource()
