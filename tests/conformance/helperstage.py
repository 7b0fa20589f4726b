"""A driver behind its sockets that answers as a recording says, and a node agent that calls it."""

import pathlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format

from drachma import errors
from drachma.api import codec, resourceclaim
from drachma.client import refusal
from drachma.driver.plugin import calls, contract, serialization, server, socketnames
from drachma.nodewire.rpc import services
from drachma.runtime import clock

Line = dict[str, Any]
_SECONDS = 10.0


class HelperStage:
    """The driver under test is started by the first step that needs it."""

    def __init__(self, case: Line, folder: pathlib.Path) -> None:
        self._driver = case["driver"]
        self._options = case.get("options", {})
        self._folder = folder
        self._claims: dict[tuple[str, str], resourceclaim.ResourceClaim] = {}
        self._step: Line = {}
        self._asked: list[Line] = []
        self._server: server.PluginServer | None = None

    async def do(self, step: Line) -> Line:
        self._step, self._asked = step, []
        match step["do"]:
            case "claim":
                claim = codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **step["claim"]})
                assert isinstance(claim, resourceclaim.ResourceClaim)
                self._claims[claim.metadata.namespace, claim.metadata.name] = claim
                return {}
            case "stop":
                await self.stop()
                return self._files()
        try:
            await self._start()
        except errors.DriverError as error:
            return {"error": str(error)}
        match step["do"]:
            case "start":
                return self._files()
            case "getInfo":
                answer = await self._call(self._registration, services.REGISTRATION, "GetInfo")
                return {
                    "type": answer.type,
                    "name": answer.name,
                    "endpoint": answer.endpoint.replace(str(self._folder), "<dir>"),
                    "supportedVersions": list(answer.supported_versions),
                }
            case "notify":
                problem = await self._problem(
                    self._call(self._registration, services.REGISTRATION, "NotifyRegistrationStatus", **step["status"])
                )
                assert self._server is not None
                return {"error": problem, "registered": self._server.is_registered}
        method = {"prepare": "NodePrepareResources", "unprepare": "NodeUnprepareResources"}[step["do"]]
        service = services.DRA[1 if step.get("service") == "v1beta1" else 0]
        response = None

        async def call() -> None:
            nonlocal response
            message = await self._call(self._dra, service, method, claims=step.get("claims", ()))
            content = json_format.MessageToDict(message, preserving_proto_field_name=True)
            response = content.get("claims")

        problem = await self._problem(call())
        cdi = self._folder / "cdi"
        return {
            "error": problem,
            "response": response,
            "plugin": self._asked or None,
            "cdi": sorted(path.name for path in cdi.iterdir()) if cdi.exists() else [],
        }

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
            self._server = None

    # The driver

    async def prepare(
        self, claims: Sequence[resourceclaim.ResourceClaim]
    ) -> Mapping[str, Sequence[contract.PreparedDevice] | Exception]:
        self._asked.append({"prepare": [f"{each.metadata.namespace}/{each.metadata.name}" for each in claims]})
        if "error" in self._step:
            raise errors.DriverError(self._step["error"])
        return {uid: self._result(told) for uid, told in self._step.get("results", {}).items()}

    def _result(self, told: Line) -> Sequence[contract.PreparedDevice] | Exception:
        if "error" in told:
            return errors.DriverError(told["error"])
        return [
            contract.PreparedDevice(
                requests=tuple(each["requestNames"]),
                pool=each["poolName"],
                device=each["deviceName"],
                cdi_device_ids=tuple(each["cdiDeviceIDs"]),
                share_id=each.get("shareID"),
            )
            for each in told["devices"]
        ]

    async def unprepare(self, claims: Sequence[contract.ClaimReference]) -> Mapping[str, Exception | None]:
        self._asked.append({"unprepare": [f"{each}:{each.uid}" for each in claims]})
        if "error" in self._step:
            raise errors.DriverError(self._step["error"])
        return {
            uid: errors.DriverError(told["error"]) if told.get("error") else None
            for uid, told in self._step.get("results", {}).items()
        }

    async def watch_health(self) -> AsyncIterator[Sequence[contract.Health]]:
        yield ()

    # The agent

    @property
    def _dra(self) -> pathlib.Path:
        return self._folder / "p" / socketnames.dra(self._options.get("rollingUpdate", ""))

    @property
    def _registration(self) -> pathlib.Path:
        registry, uid = self._folder / "r", self._options.get("rollingUpdate", "")
        if uid:
            return registry / socketnames.rolling_registration(registry, self._driver, pod_uid=uid)
        return registry / str(self._options.get("registrarSocket", socketnames.registration(self._driver)))

    async def _start(self) -> None:
        if self._server is not None:
            return
        self._server = server.PluginServer(
            self._driver,
            calls.Calls(self, self._get, serialized=serialization.Serialization(time=clock.SystemClock())),
            endpoints=server.Endpoints(dra=self._dra, registration=self._registration),
            offer=server.Offer(
                dra_v1=self._options.get("v1", True),
                dra_v1beta1=self._options.get("v1beta1", True),
                health=self._options.get("health", True),
            ),
        )
        await self._server.start()

    async def _get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        if (namespace, name) in self._claims:
            return self._claims[namespace, name]
        message = f'resourceclaims.resource.k8s.io "{name}" not found'
        raise refusal.error({"code": 404, "reason": "NotFound", "message": message})

    async def _call(self, path: pathlib.Path, service: services.Service, method: str, **fields: Any) -> Any:
        async with services.channel(path) as channel:
            request = service.method(method).request(**fields)
            return await services.call(channel, service, method, request, timeout=_SECONDS)

    async def _problem(self, call: Any) -> Line | None:
        try:
            await call
        except grpc.aio.AioRpcError as error:
            return {"code": services.code(error), "message": error.details()}
        return None

    def _files(self) -> Line:
        folders = {"plugins": self._folder / "p", "registry": self._folder / "r"}
        return {name: sorted(path.name for path in folder.iterdir()) for name, folder in folders.items()}
