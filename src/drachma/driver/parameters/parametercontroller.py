"""Controller that generates parameters from objects of vendors' kinds.

Parameters are found by what they were generated from, regenerated when that changes, and go with it: the garbage
collector takes them. An object that the vendor's type refuses is told so by an event; what was generated from it before
stays, because claims may rely on it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import event, meta
from drachma.api.v1alpha2 import parameters
from drachma.client import Client, patches
from drachma.driver.parameters import vendorkind
from drachma.runtime import Surroundings, controller, events, informer, workqueue
from drachma.values import generatedname

INVALID: Final = "InvalidParameters"
WORKERS: Final = 2

Kind = vendorkind.ClaimKind[Any] | vendorkind.ClassKind[Any]
Generated = parameters.ResourceClaimParameters | parameters.ResourceClassParameters


class Item(NamedTuple):
    """An object of one of the kinds, by its position among them."""

    kind: int
    namespace: str
    name: str


class ParameterController:
    """Resolves objects of some kinds; runs next to other controllers of a driver."""

    name: Final = "parameters"

    def __init__(self, surroundings: Surroundings, *kinds: Kind) -> None:
        self._client: Final[Client] = surroundings.client
        self._recorder: Final = surroundings.recorder(self.name)
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        self._kinds: Final = kinds
        self._caches: Final = []
        self._of_claims: Final = surroundings.informers.of(parameters.ResourceClaimParameters).cache
        self._of_classes: Final = surroundings.informers.of(parameters.ResourceClassParameters).cache
        for number, kind in enumerate(kinds):
            watched = surroundings.informers.of(kind.target(namespaced=_is_of_claims(kind)))
            self._caches.append(watched.cache)
            watched.add_handler(self._handler(number))

    async def run(self) -> None:
        """Keeps parameters as the vendor's objects say until cancelled."""
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _handler(self, number: int) -> informer.Handler[vendorkind.VendorObject]:
        def see(vendor_object: vendorkind.VendorObject) -> None:
            self._queue.add(Item(number, vendor_object.metadata.namespace, vendor_object.metadata.name))

        return informer.Handler.on_write(see)

    async def _reconcile(self, item: Item) -> None:
        vendor_object = self._caches[item.kind].get(item.name, namespace=item.namespace)
        if vendor_object is None or vendor_object.metadata.deletion_timestamp is not None:
            return
        kind = self._kinds[item.kind]
        # Objects of other kinds may have the same name.
        name = generatedname.derived(f"{item.name[:200]}-", f"{kind.group}/{kind.kind}/{item.name}")
        try:
            generated = kind.generate(vendor_object, name=name)
        except (msgspec.ValidationError, ValueError) as error:
            self._tell(kind, vendor_object, str(error))
            return
        existing = (self._of_claims if _is_of_claims(kind) else self._of_classes).get(name, namespace=item.namespace)
        try:
            await self._write(generated, existing)
        except errors.InvalidObjectError as error:
            self._tell(kind, vendor_object, str(error))

    async def _write(self, generated: Generated, existing: Generated | None) -> None:
        if existing is None:
            await self._client.create(generated)
        elif _content(existing) != _content(generated):
            # What was generated from an object of the same name that is gone belongs to the new one now.
            references = {"ownerReferences": generated.metadata.owner_references}
            content = {**_content(generated), "metadata": references}
            patch = patches.merge(content, patches.unchanged(existing))
            await self._client.patch(
                type(existing), existing.metadata.name, patch=patch, namespace=existing.metadata.namespace
            )

    def _tell(self, kind: Kind, vendor_object: vendorkind.VendorObject, problem: str) -> None:
        own = vendor_object.metadata
        reference = event.ObjectReference(
            api_version=kind.api_version, kind=kind.kind, name=own.name, namespace=own.namespace, uid=own.uid
        )
        self._recorder.record(reference, type=events.WARNING, reason=INVALID, message=problem)


def _is_of_claims(kind: Kind) -> bool:
    return isinstance(kind, vendorkind.ClaimKind)


def _content(generated: meta.Object) -> dict[str, Any]:
    """Return all fields of parameters but their metadata, under their names on the wire."""
    names = zip(type(generated).__struct_fields__, type(generated).__struct_encode_fields__, strict=True)
    return {wire: getattr(generated, name) for name, wire in names if name != "metadata"}
