"""A driver that can be broken in many ways, in this process; a check for each way has to find it out."""

from __future__ import annotations

import asyncio
import json
import pathlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
from msgspec import structs

from drachma import errors
from drachma.api import resourceclaim, resourceslice
from drachma.client import Client
from drachma.driver.publishing import layout, plan
from drachma.nodewire.rpc import services

NAME = "broken.example.com"
DEVICES = ("d-0", "d-1", "d-2")
ADMIN_PARAMETERS = {"initCommand": ["setup"]}
Line = dict[str, Any]


class DefectiveDriver:
    """Does what a driver does by hand, without the SDK, but for one ``defect``; a subject of checks."""

    can_restart = True

    def __init__(self, client: Client, folder: pathlib.Path, *, node: str, defect: str = "") -> None:
        self.defect = defect
        self._client = client
        self._folder = folder
        self._node = node
        self._cdi = folder / "cdi"
        self._dra = folder / "dra.sock"
        self.registration = folder / "reg.sock"
        self._servers: list[grpc.aio.Server] = []
        self._keeper: asyncio.Task[None] | None = None
        self._memory: dict[str, str] = {}
        self._users: dict[str, str] = {}
        self._starts = 0
        self._published = 0

    # The process

    async def start(self) -> None:
        self._cdi.mkdir(exist_ok=True)
        self._memory = {}
        self._starts += 1
        dra, registrar = grpc.aio.server(), grpc.aio.server()
        for service in services.DRA:
            handlers: dict[str, services.Handler] = {
                "NodePrepareResources": self._handler(service, "NodePrepareResources"),
                "NodeUnprepareResources": self._handler(service, "NodeUnprepareResources"),
            }
            services.serve(dra, service, handlers)
        for service in services.HEALTH:
            services.serve(dra, service, {"NodeWatchResources": self._watcher(service)})
        services.serve(
            registrar, services.REGISTRATION, {"GetInfo": self._info, "NotifyRegistrationStatus": self._notified}
        )
        for server, path in ((dra, self._dra), (registrar, self.registration)):
            path.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)
        if self.defect in ("publishes-once", "ends-without-server"):
            await self._publish()
        else:
            self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Publishes, again and again: drivers that do it by hand may well do it so."""
        while True:
            try:
                await self._publish()
            except errors.RefusedError:
                if self.defect == "gives-up-writing":
                    return
            await asyncio.sleep(0.01)

    async def kill(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        for server in self._servers:
            await server.stop(grace=None)
        self._servers.clear()

    async def stop(self) -> bool:
        await self.kill()
        if self.defect == "leaves-socket":
            self._dra.touch()
        return True

    def problem(self) -> str:
        return ""

    # Registration and slices

    async def _info(self, _request: Any, _context: Any) -> Any:
        versions = [service.advertised for service in (*services.DRA, *services.HEALTH)]
        return services.REGISTRATION.method("GetInfo").response(
            type="CSIPlugin" if self.defect == "other-type" else "DRAPlugin",
            name="Not a name" if self.defect == "bad-name" else NAME,
            endpoint=str(self._dra),
            supported_versions=["v9.DRAPlugin"] if self.defect == "no-version" else versions,
        )

    async def _notified(self, request: Any, context: Any) -> Any:
        if self.defect == "ends-when-refused" and not request.plugin_registered:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, self.kill())
        if self.defect == "refuses-registration":
            await context.abort(grpc.StatusCode.INTERNAL, "no")
        return services.REGISTRATION.method("NotifyRegistrationStatus").response()

    async def _publish(self) -> None:
        count = 2 if self.defect == "two-slices" else 1
        wanted = layout.Layout(
            slices=tuple(
                layout.SliceContent(devices=tuple(resourceslice.Device(name=name) for name in DEVICES))
                for _ in range(count)
            ),
            generation=self._starts if self.defect == "counts-generations" else 0,
        )
        present = (await self._client.list(resourceslice.ResourceSlice)).items
        if self.defect == "renews-slices" and self._published < self._starts:
            for each in present:
                await self._client.delete(resourceslice.ResourceSlice, each.metadata.name)
            present = ()
        todo = plan.plan(
            plan.Identity(NAME, layout.Owner(name=self._node, uid="u")), self._node, layout=wanted, present=present
        )
        for write in (*todo.updates, *todo.creations):
            made = write.slice
            if self.defect == "wrong-count":
                pool = resourceslice.ResourcePool(name=self._node, generation=1, resource_slice_count=7)
                made = _with(made, pool=pool)
            if self.defect == "not-owned":
                made = _unowned(made)
            await (self._client.update if write in todo.updates else self._client.create)(made)
        self._published = self._starts

    # Claims

    def _handler(self, service: services.Service, name: str) -> services.Handler:
        method = service.method(name)

        async def handle(request: Any, context: Any) -> Any:
            response = method.response()
            for asked in request.claims:
                try:
                    if name == "NodePrepareResources":
                        await self._prepare(asked, response.claims[asked.uid], service, context)
                    else:
                        if self.defect == "reads-to-undo":
                            await self._client.get(resourceclaim.ResourceClaim, asked.name, namespace=asked.namespace)
                        self._unprepare(asked)
                        response.claims[asked.uid].error = ""
                except (errors.DrachmaError, OSError, TimeoutError) as error:
                    response.claims[asked.uid].error = str(error) or type(error).__name__
                if self.defect == "answers-one-claim":
                    break
            if self.defect == "answers-nothing":
                return method.response()
            return response

        return handle

    async def _prepare(self, asked: Any, answer: Any, service: services.Service, context: Any) -> None:
        claim = await self._claim(asked, context)
        if claim is None:
            answer.error = ""
            return
        path = self._cdi / f"broken-{asked.uid}.json"
        if self.defect != "needs-directory":
            self._cdi.mkdir(exist_ok=True)
        if self.defect == "remembers-in-memory" and asked.uid in self._memory:
            identity = self._memory[asked.uid]
        elif self.defect in ("another-id-each-time", "remembers-in-memory"):
            identity = self._memory[asked.uid] = uuid.uuid4().hex
        else:
            identity = asked.uid
        await asyncio.sleep(0)
        allocation = claim.status.allocation
        results = () if allocation is None else allocation.devices.results
        for result in results:
            if result.device not in DEVICES and self.defect != "ignores-slices":
                raise errors.DriverError("no such device")
            if self._users.setdefault(result.device, asked.uid) != asked.uid and self.defect != "gives-twice":
                raise errors.DriverError("the device is in use")
        devices = []
        for number, result in enumerate(results):
            name = f"c-{identity}-{number}"
            devices.append({"name": name, "containerEdits": {"env": [f"DEVICE={result.device}"]}})
            request = result.request if self.defect == "tells-subrequests" else result.request.partition("/")[0]
            cdi = name if self.defect == "unqualified-id" else f"{NAME}/device={name}"
            if self.defect == "other-version-differs" and service is services.DRA[1]:
                cdi += "-beta"
            answer.devices.add(
                request_names=[request],
                pool_name=result.pool,
                device_name="d-9" if self.defect == "other-device" else result.device,
                cdi_device_ids=[cdi],
            )
        if self.defect == "mixes-claims-up":
            path = self._cdi / "broken.json"
        if self.defect == "writes-once" and asked.uid in self._memory:
            return
        self._memory.setdefault(asked.uid, identity)
        if self.defect == "invalid-file":
            path.write_text("{")
        elif self.defect != "no-file":
            path.write_text(json.dumps({"cdiVersion": "0.5.0", "kind": f"{NAME}/device", "devices": devices}))

    async def _claim(self, asked: Any, context: Any) -> resourceclaim.ResourceClaim | None:
        try:
            async with asyncio.timeout(0.01 if self.defect == "has-no-patience" else None):
                claim = await self._client.get(resourceclaim.ResourceClaim, asked.name, namespace=asked.namespace)
        except errors.ObjectNotFoundError:
            if self.defect == "other-status":
                await context.abort(grpc.StatusCode.UNKNOWN, "no such claim")
            if self.defect == "prepares-unknown":
                return None
            raise
        except errors.RefusedError:
            if self.defect == "prepares-unread":
                return None
            raise
        if claim.metadata.uid != asked.uid and self.defect != "ignores-uid":
            raise errors.DriverError("another claim")
        if claim.status.allocation is None and self.defect != "ignores-allocation":
            raise errors.DriverError("not allocated")
        if (
            claim.status.allocation is not None
            and claim.status.allocation.devices.config
            and (self.defect != "ignores-parameters")
        ):
            (entry,) = claim.status.allocation.devices.config
            of_class = entry.source == "FromClass" or self.defect == "ignores-source"
            if not of_class or entry.opaque is None or entry.opaque.parameters != ADMIN_PARAMETERS:
                raise errors.DriverError("no such parameters")
        return claim

    def _unprepare(self, asked: Any) -> None:
        path = self._cdi / f"broken-{asked.uid}.json"
        if self.defect == "leaves-files":
            return
        if self.defect in ("unprepares-once", "fails-on-unknown") and not path.exists():
            raise errors.DriverError("no such claim")
        if self.defect == "forgets-when-restarted" and asked.uid not in self._memory:
            return
        self._memory.pop(asked.uid, None)
        self._users = {device: uid for device, uid in self._users.items() if uid != asked.uid}
        path.unlink(missing_ok=True)

    def _watcher(self, service: services.Service) -> services.Handler:
        (method,) = service.methods

        async def watch(_request: Any, context: Any) -> AsyncIterator[Any]:
            if self.defect == "health-ends":
                return
            response = method.response()
            device = "d-9" if self.defect == "health-of-strangers" else "d-0"
            response.devices.add(device={"pool_name": self._node, "device_name": device}, health=1)
            yield response
            await asyncio.Event().wait()

        return watch


def _with(made: resourceslice.ResourceSlice, **changes: Any) -> resourceslice.ResourceSlice:
    return structs.replace(made, spec=structs.replace(made.spec, **changes))


def _unowned(made: resourceslice.ResourceSlice) -> resourceslice.ResourceSlice:
    return structs.replace(made, metadata=structs.replace(made.metadata, owner_references=()))
