"""Stage of a check: allocates claims, calls the driver on its sockets, reads its files and its slices."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio

from drachma import errors
from drachma.api import namespace, resourceclaim, resourceslice
from drachma.client import Client, Selection
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.driver.conformance.subject import Subject
from drachma.nodewire.cdi import registry
from drachma.nodewire.rpc import services

CALL_SECONDS: Final = 45.0
"""As long as a kubelet waits for an answer."""

WAIT_SECONDS: Final = 40.0
"""For what comes by itself: sockets, slices. Drivers may restore slices after half a minute only."""

_POLL_SECONDS: Final = 0.02
_NAMESPACE: Final = "drachma-driver-check"
REQUEST: Final = "request"
SUBREQUEST: Final = "subrequest"


class Info(NamedTuple):
    """Information that a driver registers with."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


class PublishedDevice(NamedTuple):
    """A device that can be allocated."""

    pool: str
    device: resourceslice.Device


class Answer(NamedTuple):
    """Comparable answer of a driver for one claim: devices in order, or an error."""

    devices: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = ()
    """Pool, device, requests, CDI ids."""
    error: str = ""

    @property
    def cdi_ids(self) -> list[str]:
        return [each for device in self.devices for each in device[3]]


class CallError(Exception):
    """A call failed as a whole."""


class Stage:
    """One driver on one node. Claims that are made here are removed in the end."""

    def __init__(
        self,
        client: Client,
        subject: Subject,
        *,
        node: str,
        registration: Callable[[], pathlib.Path | None],
        cdi: pathlib.Path,
        faults: ApiFaults | None = None,
        admin_parameters: Any = None,
    ) -> None:
        """``registration`` finds the socket by which the driver is known, once it is there.

        ``faults`` are those of the API server as the driver sees it; None where they cannot be injected.
        ``admin_parameters`` are parameters that the driver takes from classes only, if it has such.
        """
        self.client: Final = client
        self.subject: Final = subject
        self.node: Final = node
        self.cdi: Final = cdi
        self.faults: Final = faults
        self.admin_parameters: Final = admin_parameters
        self.info = Info("", "", "", ())
        self.publishes = True
        """True if the driver publishes slices."""
        self._registration: Final = registration
        self._claims: Final[list[str]] = []

    # The driver

    async def start(self) -> None:
        """Starts the driver, and registers it as a node agent does.

        Raises:
            errors.DriverError: it ends, or its socket does not answer in time.
        """
        await self.subject.start()
        await self.register()

    async def register(self) -> None:
        path = await self.until(self._registration, "no registration socket appears")
        assert path is not None, "waited for"
        failure = ""

        async def ask() -> Any:
            nonlocal failure
            try:
                return await self._ask(path, services.REGISTRATION, "GetInfo")
            except CallError as error:
                failure = str(error)
                return None

        answer = await self.await_condition(ask, lambda: f"GetInfo on {path}: {failure}")
        self.info = Info(answer.type, answer.name, answer.endpoint or str(path), tuple(answer.supported_versions))

    async def notify(self, *, is_registered: bool, error: str = "") -> None:
        """Tells the driver what became of its registration. Raises CallError."""
        path = self._registration()
        assert path is not None, "registered before"
        fields = {"plugin_registered": is_registered, "error": error}
        await self._ask(path, services.REGISTRATION, "NotifyRegistrationStatus", **fields)

    async def restart(self, *, kills: bool) -> None:
        """Another process of the driver, after the old one was killed or stopped."""
        if kills:
            await self.subject.kill()
        else:
            await self.subject.stop()
        await self.start()

    # Calls

    async def prepare(self, *claims: resourceclaim.ResourceClaim, version: int = 0) -> dict[str, Answer]:
        """By uid what the driver answers. Raises CallError."""
        return await self._call("NodePrepareResources", [reference(claim) for claim in claims], version)

    async def unprepare(self, *claims: Mapping[str, str], version: int = 0) -> dict[str, Answer]:
        """Like prepare(), for NodeUnprepareResources. Raises CallError."""
        return await self._call("NodeUnprepareResources", claims, version)

    async def prepare_references(self, *asked: Mapping[str, str]) -> dict[str, Answer]:
        """Asks for claims that need not exist. Raises CallError."""
        return await self._call("NodePrepareResources", asked, 0)

    async def _call(self, method: str, claims: Sequence[Mapping[str, str]], version: int) -> dict[str, Answer]:
        service = self.dra_services()[version]
        response = await self._ask(pathlib.Path(self.info.endpoint), service, method, claims=claims)
        return {uid: _answer(response.claims[uid]) for uid in response.claims}

    def dra_services(self) -> list[services.Service]:
        """Return the versions of DRA that the driver has, in its own order."""
        by_name = {service.advertised: service for service in services.DRA}
        return [by_name[version] for version in self.info.versions if version in by_name]

    async def _ask(self, path: pathlib.Path, service: services.Service, method: str, **fields: Any) -> Any:
        async with services.channel(path) as channel:
            request = service.method(method).request(**fields)
            try:
                return await services.call(channel, service, method, request, timeout=CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise CallError(services.problem(error)) from error

    @contextlib.asynccontextmanager
    async def health(self) -> AsyncIterator[Any]:
        """Return the stream of reports of the newest version of health."""
        service = next(each for each in services.HEALTH if each.advertised in self.info.versions)
        (method,) = service.methods
        async with services.channel(self.info.endpoint) as channel:
            yield services.stream(channel, service, method.name, method.request())

    # Slices and claims

    async def slices(self) -> list[resourceslice.ResourceSlice]:
        """Return the driver's slices of the node, and those that belong to none."""
        listing = await self.client.list(resourceslice.ResourceSlice, Selection(fields=f"spec.driver={self.info.name}"))
        return [each for each in listing.items if each.spec.node_name in (None, "", self.node)]

    async def devices(self) -> list[PublishedDevice]:
        """Return the published devices in the order of slices."""
        published = []
        for each in await self.slices():
            published += [PublishedDevice(each.spec.pool.name, device) for device in each.spec.devices]
        return published

    async def claim(
        self,
        *devices: PublishedDevice,
        parameters: Any = None,
        source: str = "FromClaim",
        is_subrequest: bool = False,
        is_allocated: bool = True,
    ) -> resourceclaim.ResourceClaim:
        """Return a claim that was given devices."""
        name = f"check-{uuid.uuid4().hex[:10]}"
        exactly = {"deviceClassName": self.info.name}
        request: dict[str, Any] = (
            {"name": REQUEST, "firstAvailable": [{"name": SUBREQUEST, **exactly}]}
            if is_subrequest
            else {"name": REQUEST, "exactly": exactly}
        )
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": _NAMESPACE},
            "spec": {"devices": {"requests": [request]}},
        }
        await self._ensure_namespace()
        claim = await self.client.create_document(resourceclaim.ResourceClaim, document)
        self._claims.append(name)
        if is_allocated:
            title = f"{REQUEST}/{SUBREQUEST}" if is_subrequest else REQUEST
            results = [self._result(title, each) for each in devices]
            allocation: dict[str, Any] = {"results": results}
            if parameters is not None:
                opaque = {"driver": self.info.name, "parameters": parameters}
                allocation["config"] = [{"source": source, "opaque": opaque}]
            claim["status"] = {"allocation": {"devices": allocation}}
            await self.client.update_document(resourceclaim.ResourceClaim, claim, subresource="status")
        return await self.client.get(resourceclaim.ResourceClaim, name, namespace=_NAMESPACE)

    def _result(self, request: str, published: PublishedDevice) -> dict[str, Any]:
        result: dict[str, Any] = {
            "request": request,
            "driver": self.info.name,
            "pool": published.pool,
            "device": published.device.name,
        }
        if published.device.allow_multiple_allocations:
            result["shareID"] = str(uuid.uuid4())
            result["consumedCapacity"] = {
                name: str(capacity.request_policy.default)
                if capacity.request_policy is not None and capacity.request_policy.default is not None
                else str(capacity.value)
                for name, capacity in published.device.capacity.items()
            }
        return result

    async def remove(self, claim: resourceclaim.ResourceClaim) -> None:
        await self.client.delete(resourceclaim.ResourceClaim, claim.metadata.name, namespace=_NAMESPACE)
        self._claims.remove(claim.metadata.name)

    async def clean_up(self) -> None:
        """Removes what checks made."""
        for name in self._claims:
            with contextlib.suppress(errors.DrachmaError):
                await self.client.delete(resourceclaim.ResourceClaim, name, namespace=_NAMESPACE)
        self._claims.clear()

    async def _ensure_namespace(self) -> None:
        with contextlib.suppress(errors.ObjectExistsError):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
            await self.client.create_document(namespace.Namespace, document)

    # Files

    def unresolved(self, ids: Sequence[str]) -> list[str]:
        """CDI devices that no valid file has."""
        entries = registry.read([self.cdi]).entries
        return [each for each in ids if each not in entries]

    def lose_files(self) -> None:
        """Delete all CDI files, as a reboot does."""
        for path in self.cdi.glob("*") if self.cdi.exists() else ():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    # Waiting

    async def until(self, look: Callable[[], Any], problem: str) -> Any:
        """Looks until there is something; DriverError when that takes too long, or the driver ends."""

        async def asked() -> Any:
            return look()

        return await self.await_condition(asked, lambda: problem)

    async def await_condition(self, look: Callable[[], Any], problem: Callable[[], str]) -> Any:
        """Like until(), with a condition that is awaited."""
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while not (answer := await look()):
            if ended := self.subject.problem():
                raise errors.DriverError(ended)
            if asyncio.get_running_loop().time() > deadline:
                raise errors.DriverError(f"{problem()} within {WAIT_SECONDS:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)
        return answer


def reference(claim: resourceclaim.ResourceClaim) -> dict[str, str]:
    """Return a claim as calls name it."""
    metadata = claim.metadata
    return {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}


def _answer(message: Any) -> Answer:
    devices = getattr(message, "devices", ())
    return Answer(
        tuple(
            (each.pool_name, each.device_name, tuple(each.request_names), tuple(each.cdi_device_ids))
            for each in devices
        ),
        message.error,
    )
