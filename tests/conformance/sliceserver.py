"""An API server as far as publishing needs it, with the faults and the forgetfulness that a recording asks for."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from msgspec import structs

from drachma.api import codec, meta, node, resourceslice
from drachma.api.struct import ABSENT_TUPLE
from drachma.client import patches, protocol, refusal
from drachma.client.protocol import Change, Event

Line = dict[str, Any]
_TAINTED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_FAULTS = {
    "conflict": (
        409,
        "Conflict",
        'Operation cannot be fulfilled on resourceslices.resource.k8s.io "x": the object has been modified',
    ),
    "notfound": (404, "NotFound", 'resourceslices.resource.k8s.io "x" not found'),
    "invalid": (
        422,
        "Invalid",
        'ResourceSlice.resource.k8s.io "x" is invalid: spec.devices[0].name: Required value',
    ),
    "unavailable": (503, "ServiceUnavailable", "try later"),
    "forbidden": (403, "Forbidden", 'resourceslices.resource.k8s.io "x" is forbidden: no'),
    "timeout": (504, "Timeout", "try later"),
}


class SliceServer:
    """Slices and nodes in memory; ``writes`` is what a publisher did."""

    def __init__(self) -> None:
        self.writes: list[Line] = []
        self.drops: frozenset[str] = frozenset()
        self._slices: dict[str, resourceslice.ResourceSlice] = {}
        self._nodes: dict[str, node.Node] = {}
        self._faults: list[Line] = []
        self._watchers: list[tuple[protocol.Selection, asyncio.Queue[Event[Any]]]] = []
        self._revision = 100
        self._suffix = 0

    @property
    def client(self) -> protocol.Client:
        return cast(protocol.Client, self)

    # What a scenario sets

    def fail(self, fault: Line) -> None:
        self._faults.append({**fault})

    def add_node(self, document: Line) -> None:
        uid, name = document["metadata"]["uid"], document["metadata"]["name"]
        self._nodes[name] = node.Node(metadata=meta.ObjectMeta(name=name, uid=uid))

    def put(self, document: Line) -> None:
        """Somebody else creates or replaces a slice."""
        typed = codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **document})
        assert isinstance(typed, resourceslice.ResourceSlice)
        self._keep(typed)

    def remove(self, name: str) -> None:
        """Somebody else deletes a slice; names are given without the suffix that is chance."""
        self._drop(self.resolve(name))

    def resolve(self, name: str) -> str:
        """The name of a slice, whose suffix may be another one than the recording has."""
        if name in self._slices:
            return name
        prefix = name.rpartition("-")[0]
        return next(each for each in self._slices if each.rpartition("-")[0] == prefix)

    def slices(self) -> list[Line]:
        """The end state, as recordings have it."""
        return [
            {
                "devices": len(each.spec.devices),
                "generation": each.spec.pool.generation,
                "name": name,
                "pool": each.spec.pool.name,
                "resourceSliceCount": each.spec.pool.resource_slice_count,
            }
            for name, each in sorted(self._slices.items())
        ]

    # The client's side

    async def get(self, kind: Any, name: str, *, namespace: str = "") -> Any:
        if name in self._nodes:
            return self._nodes[name]
        raise refusal.error({"code": 404, "reason": "NotFound", "message": f'nodes "{name}" not found'})

    async def list(
        self, kind: Any, selection: protocol.Selection, *, limit: int = 0, continue_token: str = ""
    ) -> protocol.Listing[Any]:
        items = tuple(each for each in self._slices.values() if _is_selected(each, selection))
        return protocol.Listing(items=items, resource_version=str(self._revision))

    @contextlib.asynccontextmanager
    async def watch(
        self, kind: Any, selection: protocol.Selection, *, resource_version: str
    ) -> AsyncIterator["_Watch"]:
        events: asyncio.Queue[Event[Any]] = asyncio.Queue()
        self._watchers.append((selection, events))
        try:
            yield _Watch(events)
        finally:
            self._watchers.remove((selection, events))

    async def create(self, made: resourceslice.ResourceSlice) -> resourceslice.ResourceSlice:
        prefix = made.metadata.generate_name
        self._may_fail("create", {"generateName": prefix})
        self._suffix += 1
        name = f"{prefix}{self._suffix:03d}"
        metadata = structs.replace(made.metadata, name=name, uid=f"uid-{name}")
        stored = self._keep(structs.replace(made, metadata=metadata))
        write: Line = {"verb": "create", "generateName": prefix, "name": name, "spec": _spec(made)}
        if made.metadata.owner_references:
            write["ownerReferences"] = codec.encode(made)["metadata"]["ownerReferences"]
        self.writes.append(write)
        return stored

    async def update(self, changed: resourceslice.ResourceSlice, *, subresource: str = "") -> Any:
        name = changed.metadata.name
        self._may_fail("update", {"name": name})
        known = self._slices.get(name)
        if known is None or known.metadata.resource_version != changed.metadata.resource_version:
            raise _error("conflict" if known is not None else "notfound")
        stored = self._keep(changed)
        self.writes.append({"verb": "update", "name": name, "spec": _spec(changed)})
        return stored

    async def delete(self, kind: Any, name: str, *, preconditions: patches.Preconditions) -> None:
        given = {"uid": bool(preconditions.uid), "resourceVersion": bool(preconditions.resource_version)}
        self._may_fail("delete", {"name": name, "preconditions": given})
        known = self._slices.get(name)
        if known is None:
            raise _error("notfound")
        if patches.unchanged(known) != preconditions:
            raise _error("conflict")
        self._drop(name)
        self.writes.append({"verb": "delete", "name": name, "preconditions": given})

    def _may_fail(self, verb: str, write: Line) -> None:
        for fault in self._faults:
            if fault["verb"] == verb and fault["times"] > 0:
                fault["times"] -= 1
                error = _error(fault["error"])
                self.writes.append({"verb": verb, **write, "failed": str(error)})
                raise error

    def _keep(self, new: resourceslice.ResourceSlice) -> resourceslice.ResourceSlice:
        self._revision += 1
        metadata = structs.replace(new.metadata, resource_version=str(self._revision))
        stored = structs.replace(new, metadata=metadata, spec=self._stored(new.spec))
        change = Change.MODIFIED if metadata.name in self._slices else Change.ADDED
        self._slices[metadata.name] = stored
        self._tell(change, stored)
        return stored

    def _drop(self, name: str) -> None:
        self._revision += 1
        gone = self._slices.pop(name)
        metadata = structs.replace(gone.metadata, resource_version=str(self._revision))
        self._tell(Change.DELETED, structs.replace(gone, metadata=metadata))

    def _tell(self, change: Change, about: resourceslice.ResourceSlice) -> None:
        for selection, events in self._watchers:
            if _is_selected(about, selection):
                events.put_nowait(Event(change, about))

    def _stored(self, spec: resourceslice.ResourceSliceSpec) -> resourceslice.ResourceSliceSpec:
        devices = spec.devices
        if devices:
            devices = tuple(self._stored_device(device) for device in devices)
        if "DRAPartitionableDevices" in self.drops:
            spec = structs.replace(spec, shared_counters=ABSENT_TUPLE, per_device_node_selection=None)
        if "DRAPartitionableDevicesType" in self.drops:
            spec = structs.replace(spec, partition_type_attribute=None)
        if "DRAOptionalNodeOperations" in self.drops:
            spec = structs.replace(spec, skip_node_operations=ABSENT_TUPLE)
        return structs.replace(spec, devices=devices)

    def _stored_device(self, device: resourceslice.Device) -> resourceslice.Device:
        if "DRADeviceTaints" in self.drops:
            device = structs.replace(device, taints=ABSENT_TUPLE)
        if "DRAPartitionableDevices" in self.drops:
            device = structs.replace(device, consumes_counters=ABSENT_TUPLE)
        if "DRADeviceBindingConditions" in self.drops:
            device = structs.replace(
                device, binding_conditions=ABSENT_TUPLE, binding_failure_conditions=ABSENT_TUPLE, binds_to_node=None
            )
        if "DRAConsumableCapacity" in self.drops:
            device = structs.replace(device, allow_multiple_allocations=None)
        if not device.taints:
            return device
        taints = (
            taint if taint.time_added is not None else structs.replace(taint, time_added=_TAINTED)
            for taint in device.taints
        )
        return structs.replace(device, taints=tuple(taints))


class _Watch:
    def __init__(self, events: asyncio.Queue[Event[Any]]) -> None:
        self._events = events

    async def batch(self) -> Sequence[Event[Any]]:
        return [await self._events.get()]


def _error(name: str) -> Exception:
    code, reason, message = _FAULTS[name]
    return refusal.error({"code": code, "reason": reason, "message": message})


def _is_selected(each: resourceslice.ResourceSlice, selection: protocol.Selection) -> bool:
    facts = {"spec.driver": each.spec.driver, "spec.nodeName": each.spec.node_name or ""}
    return all(
        facts[field] == value for field, _, value in (part.partition("=") for part in selection.fields.split(","))
    )


def _spec(of: resourceslice.ResourceSlice) -> Line:
    spec: Line = codec.encode(of)["spec"]
    return spec
