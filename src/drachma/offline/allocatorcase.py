"""Allocator cases: one allocation with everything it depends on as one JSON object, the format of recorded allocations.

``drachma allocate --batch`` and the conformance tests read them. A case has a ``name``, ``features`` (the gates that
are on, or ``all``), ``node``, ``slices``, ``classes``, ``claims``, and the current use: ``allocatedDevices``,
``allocatedSharedDeviceIDs`` (``driver/pool/device/share``) and ``allocatedCapacity``. Objects are of
``resource.k8s.io/v1`` unless they name another version. Unknown fields, such as recorded answers, are ignored.

A malformed case raises DecodeError or InvalidValueError with the name of the field.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from drachma import allocator, errors
from drachma.allocator import allocated, selectors
from drachma.api import codec, deviceclass, meta, resourceclaim, resourceslice
from drachma.claims import identity
from drachma.values import quantity

SHARE_ID: Final = "share"
"""ID of every share in an answer, always the same so that answers can be compared."""

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class _DeviceEntry(msgspec.Struct, frozen=True):
    driver: str
    pool: str
    device: str

    @property
    def id(self) -> identity.DeviceID:
        return identity.DeviceID(self.driver, self.pool, self.device)


class _CapacityEntry(_DeviceEntry, frozen=True):
    consumed: dict[str, str | int] = {}


class _NodeMeta(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    declared_features: tuple[str, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: _NodeMeta
    status: _NodeStatus = _NodeStatus()


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    node: _Node
    features: list[str] | None = None
    claims: list[dict[str, Any]] | None = None
    classes: list[dict[str, Any]] | None = None
    slices: list[dict[str, Any]] | None = None
    allocated_devices: list[_DeviceEntry] | None = None
    shared_device_ids: list[str] | None = msgspec.field(default=None, name="allocatedSharedDeviceIDs")
    allocated_capacity: list[_CapacityEntry] | None = None
    repeat: int = 1


class AllocatorCase:
    """Case that can be answered any number of times."""

    def __init__(self, document: Any) -> None:
        try:
            form = msgspec.convert(document, _Form)
        except msgspec.ValidationError as error:
            raise errors.DecodeError(f"not a case: {error}") from None
        if form.repeat < 1:
            raise errors.DecodeError(f"not a case: repeat: {form.repeat}: must be at least 1")
        self.name = form.name
        self.repeat = form.repeat
        """Number of repetitions for timing."""
        features = allocator.Features.parse_names(form.features or ())
        node = form.node
        self.node = allocator.Node(node.metadata.name, node.metadata.labels, node.status.declared_features)
        self.claims = _objects(resourceclaim.ResourceClaim, form.claims)
        self.allocator = allocator.Allocator(
            allocator.Catalog(_objects(resourceslice.ResourceSlice, form.slices)),
            classes=allocator.Classes(_objects(deviceclass.DeviceClass, form.classes), missing=_missing_class_message),
            allocated=_state(form, features),
            compiler=selectors.SelectorCompiler(features),
            features=features,
            share_ids=lambda: SHARE_ID,
        )

    def run(self) -> allocator.Outcome | errors.AllocationError:
        """Return the outcome, or the error of the allocator, which is an answer too."""
        try:
            return self.allocator.allocate(self.node, self.claims)
        except errors.AllocationError as error:
            return error

    def answer(self) -> dict[str, Any]:
        """Return the answer in its recorded form."""
        return to_recorded_form(self.run())


def to_recorded_form(outcome: allocator.Outcome | errors.AllocationError) -> dict[str, Any]:
    """Return an outcome in its recorded form: ``results``, an ``error``, or neither if the claims do not fit."""
    match outcome:
        case allocator.Allocated(results):
            return {"results": [plain(entry) for entry in results]}
        case allocator.DoesNotFit():
            return {}
        case allocator.GaveUp(reason):
            return {"error": f"gave up: {reason}"}
        case errors.AllocationError():
            return {"error": str(outcome)}


def plain(result: resourceclaim.AllocationResult) -> dict[str, Any]:
    """Return an allocation result as a document."""
    carrier = resourceclaim.ResourceClaim(status=resourceclaim.ResourceClaimStatus(allocation=result))
    document: dict[str, Any] = codec.encode(carrier)["status"]["allocation"]
    return document


def answers(lines: Iterable[bytes], *, timing: bool) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield an answer to every line that is not blank, and the problem of a malformed line.

    With ``timing``, ``allocUs`` is the best of the line's repeats.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _answer(line, f"line {number}", timing=timing)


def _answer(line: bytes, place: str, *, timing: bool) -> tuple[dict[str, Any], str]:
    name = place
    try:
        document = _parse(line)
        if isinstance(document.get("name"), str):
            name = document["name"]
        case = AllocatorCase(document)
    except errors.DrachmaError as error:
        problem = f"{place}: {error}"
        return {"name": name, "error": problem}, problem
    if not timing:
        return {"name": name, **case.answer()}, ""
    best = float("inf")
    for _ in range(case.repeat):
        begin = time.perf_counter_ns()
        outcome = case.run()
        best = min(best, (time.perf_counter_ns() - begin) / 1000)
    return {"name": name, **to_recorded_form(outcome), "allocUs": best}, ""


def _parse(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise errors.DecodeError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise errors.DecodeError("expected an object with a case")
    return document


def _objects(model: type[_ObjectT], documents: list[dict[str, Any]] | None) -> list[_ObjectT]:
    objects: list[_ObjectT] = []
    for document in documents or ():
        decoded = codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": model.__name__, **document})
        if not isinstance(decoded, model):
            raise errors.DecodeError(f"{codec.title(document)}: expected a {model.__name__}")
        objects.append(decoded)
    return objects


def _state(form: _Form, features: allocator.Features) -> allocator.AllocatedState:
    state = allocator.AllocatedState(consumable_capacity=features.consumable_capacity)
    for entry in form.allocated_devices or ():
        state.hold(allocated.Holding(entry.id))
    for text in form.shared_device_ids or ():
        parts = text.split("/")
        if len(parts) != 4:
            raise errors.DecodeError(f"allocatedSharedDeviceIDs: {text!r}: expected driver/pool/device/share")
        state.hold(allocated.Holding(identity.DeviceID(*parts[:3]), parts[3]))
    for consumer in form.allocated_capacity or ():
        consumed = {name: quantity.Quantity.parse(str(amount)) for name, amount in consumer.consumed.items()}
        state.hold(allocated.Holding(consumer.id, consumed=consumed))
    return state


def _missing_class_message(_name: str) -> str:
    # A recorded case does not come from an API server, so there is nothing to report to one.
    return ' "not found" not found'
