"""Drivers of Kubernetes 1.30 and 1.31 on a node of today: they advertise a number, and are called as in their time."""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import prometheus_client
import pytest
from msgspec import structs

from drachma import errors
from drachma.api import meta, resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.client import Client
from drachma.node import agentmetrics
from drachma.node.claims.preparedclaims import PREPARE, UNPREPARE
from drachma.node.drivers import firstalphacalls, instances
from drachma.nodewire.rpc import messages, services
from drachma.process import embedded
from drachma.runtime import clock
from drachma.store import memory
from drachma.structured import counterpart
from drachma.testing import claim
from tests import firstalpha

DRIVER = "cards.example.com"
POOL = "worker/v1alpha2"
CDI_ID = "cards.example.com/card=card-0"


class EarlyDriver:
    """A driver that has one of the services of its time, and keeps what it is asked."""

    def __init__(self, service: services.Service, *, problem: str = "") -> None:
        self._service = service
        self._problem = problem
        self.asked: list[Any] = []

    async def serve(self, endpoint: pathlib.Path) -> grpc.aio.Server:
        server = grpc.aio.server()
        handlers: dict[services.Service, dict[str, services.Handler]] = {
            services.NODE_1_31: {PREPARE: self._prepare_devices, UNPREPARE: self._unprepare},
            services.NODE_1_30: {PREPARE: self._prepare, UNPREPARE: self._unprepare},
            services.NODE_SINGLE: {"NodePrepareResource": self._prepare_one, "NodeUnprepareResource": self._undo_one},
        }
        services.serve(server, self._service, handlers[self._service])
        server.add_insecure_port(f"unix:{endpoint}")
        await server.start()
        return server

    async def _prepare_devices(self, request: Any, _context: Any) -> Any:
        self.asked += request.claims
        response = messages.DRA_1_31.NodePrepareResourcesResponse()
        for each in request.claims:
            response.claims[each.uid].devices.add(pool_name=POOL, device_name="card-0", cdi_device_ids=[CDI_ID])
        return response

    async def _prepare(self, request: Any, _context: Any) -> Any:
        self.asked += request.claims
        response = messages.DRA_1_30.NodePrepareResourcesResponse()
        for each in request.claims:
            response.claims[each.uid].cdi_devices.append(CDI_ID)
            response.claims[each.uid].error = self._problem
        return response

    async def _unprepare(self, request: Any, _context: Any) -> Any:
        self.asked += request.claims
        response = self._service.method(UNPREPARE).response()
        for each in request.claims:
            response.claims[each.uid].error = ""
        return response

    async def _prepare_one(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        if self._problem:
            await context.abort(grpc.StatusCode.INTERNAL, self._problem)
        return messages.DRA_SINGLE.NodePrepareResourceResponse(cdi_devices=[CDI_ID])

    async def _undo_one(self, request: Any, _context: Any) -> Any:
        self.asked.append(request)
        return messages.DRA_SINGLE.NodeUnprepareResourceResponse()


async def _no_farewell(_driver: str) -> None:
    """Nothing is done where a driver is gone."""


@contextlib.asynccontextmanager
async def registered(early: EarlyDriver, client: Client) -> AsyncIterator[instances.DriverInstance]:
    """The driver as an agent has registered it."""
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        endpoint = pathlib.Path(folder) / "dra.sock"
        server = await early.serve(endpoint)
        registry = instances.DriverInstances(
            metrics=agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry()).node_metrics("worker"),
            clock=clock.SystemClock(),
            on_gone=_no_farewell,
            first_alpha=firstalphacalls.FirstAlphaClaims(client),
        )
        try:
            yield registry.register(DRIVER, str(endpoint), ["1.0.0"])
        finally:
            await registry.close()
            await server.stop(grace=None)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A server with a claim of the first alpha, which was allocated a card, and the v1 claim that stands for it."""
    async with embedded.server(memory.MemoryStore(), gates=firstalpha.GATES) as server:
        metadata = meta.ObjectMeta(name="c", namespace="default")
        spec = alpha.ResourceClaimSpec(resource_class_name="cards")
        made = await server.client.create(alpha.ResourceClaim(metadata=metadata, spec=spec))
        data = alpha.StructuredResourceHandle(
            vendor_claim_parameters={"sharing": "none"},
            node_name="worker",
            named_resources_with_attributes=alpha.NamedResourcesWithAttributesResult(resources=("card.0",)),
        )
        handle = alpha.ResourceHandle(driver_name=DRIVER, structured_data=data)
        status = alpha.ResourceClaimStatus(
            driver_name=DRIVER, allocation=alpha.AllocationResult(resource_handles=(handle,))
        )
        await server.client.update(structs.replace(made, status=status), subresource="status")
        own = claim("c").request("r0", device_class="cards").annotation(counterpart.CLAIM, made.metadata.uid)
        allocated = own.allocated(("r0", DRIVER, POOL, "card-0")).build()
        stored_claim = await server.client.create(
            structs.replace(allocated, status=resourceclaim.ResourceClaimStatus())
        )
        await server.client.update(structs.replace(stored_claim, status=allocated.status), subresource="status")
        yield server.client


async def call(instance: instances.DriverInstance, client: Client, method: str) -> Any:
    """The answer for the claim, as the agent reads it."""
    stored_claim = await client.get(resourceclaim.ResourceClaim, "c", namespace="default")
    reference = {"namespace": "default", "name": "c", "uid": stored_claim.metadata.uid}
    answers = (await instance.call(method, instance.request(method, claims=[reference]))).claims
    assert list(answers) == [stored_claim.metadata.uid]
    return answers[stored_claim.metadata.uid]


async def test_a_driver_of_1_30_is_told_what_was_allocated(client: Client) -> None:
    early = EarlyDriver(services.NODE_1_30)
    async with registered(early, client) as instance:
        answer = await call(instance, client, PREPARE)
        [device] = answer.devices
        assert (device.pool_name, device.device_name) == (POOL, "card-0")
        assert list(device.cdi_device_ids) == [CDI_ID]
        assert not device.request_names, "it is for whoever uses the claim, whichever request that names"
        assert (await call(instance, client, UNPREPARE)).error == ""
    original = await client.get(alpha.ResourceClaim, "c", namespace="default")
    assert [(each.namespace, each.name, each.uid) for each in early.asked] == [
        ("default", "c", original.metadata.uid)
    ] * 2
    [handle] = early.asked[0].structured_resource_handle
    assert handle.vendorClaimParameters.raw == b'{"sharing":"none"}'
    assert handle.nodeName == "worker"
    assert [each.allocationResultModel.namedResources.name for each in handle.results] == ["card.0"]
    assert early.asked[1] == early.asked[0]


async def test_a_driver_of_before_is_called_for_one_claim_at_a_time(client: Client) -> None:
    early = EarlyDriver(services.NODE_SINGLE)
    async with registered(early, client) as instance:
        [device] = (await call(instance, client, PREPARE)).devices
        assert (device.device_name, list(device.cdi_device_ids)) == ("card-0", [CDI_ID])
        assert (await call(instance, client, UNPREPARE)).error == ""
    original = await client.get(alpha.ResourceClaim, "c", namespace="default")
    assert [(each.claim_name, each.claim_uid) for each in early.asked] == [("c", original.metadata.uid)] * 2


async def test_a_driver_of_1_31_is_told_names(client: Client) -> None:
    early = EarlyDriver(services.NODE_1_31)
    async with registered(early, client) as instance:
        [device] = (await call(instance, client, PREPARE)).devices
        assert (device.device_name, list(device.cdi_device_ids)) == ("card-0", [CDI_ID])
    stored_claim = await client.get(resourceclaim.ResourceClaim, "c", namespace="default")
    assert [each.uid for each in early.asked] == [stored_claim.metadata.uid]


@pytest.mark.parametrize(
    ("service", "want"),
    [
        pytest.param(services.NODE_1_30, "no such card", id="in-its-answer"),
        pytest.param(services.NODE_SINGLE, "rpc error: code = Internal desc = no such card", id="as-a-failed-call"),
    ],
)
async def test_what_a_driver_refuses_is_told_of_the_claim(client: Client, service: services.Service, want: str) -> None:
    async with registered(EarlyDriver(service, problem="no such card"), client) as instance:
        assert (await call(instance, client, PREPARE)).error == want


async def test_a_v1_claim_is_told_in_the_words_of_its_time(client: Client) -> None:
    stored_claim = await client.get(resourceclaim.ResourceClaim, "c", namespace="default")
    plain = structs.replace(stored_claim, metadata=structs.replace(stored_claim.metadata, annotations={}))
    await client.update(plain)
    early = EarlyDriver(services.NODE_1_30)
    async with registered(early, client) as instance:
        await call(instance, client, PREPARE)
    [claim_request] = early.asked
    assert claim_request.uid == stored_claim.metadata.uid
    [handle] = claim_request.structured_resource_handle
    assert [each.allocationResultModel.namedResources.name for each in handle.results] == ["card-0"]


async def test_a_claim_that_is_not_allocated_yet_is_not_prepared(client: Client) -> None:
    original = await client.get(alpha.ResourceClaim, "c", namespace="default")
    await client.update(structs.replace(original, status=alpha.ResourceClaimStatus()), subresource="status")
    early = EarlyDriver(services.NODE_1_30)
    async with registered(early, client) as instance:
        with pytest.raises(errors.NodeError, match="ResourceClaim c: not allocated in v1alpha2"):
            await call(instance, client, PREPARE)
    assert not early.asked


@pytest.mark.parametrize(
    ("advertised", "want"),
    [
        pytest.param("1.0.0", True, id="number"),
        pytest.param("v1.2", True, id="number-with-v"),
        pytest.param("2.0.0", False, id="later-number"),
        pytest.param("0.9", False, id="earlier-number"),
        pytest.param("1", False, id="one-field"),
        pytest.param("v1.DRAPlugin", False, id="service"),
    ],
)
def test_which_numbers_are_taken(advertised: str, want: bool) -> None:
    assert firstalphacalls.is_version(advertised) is want


async def test_a_node_without_the_first_alpha_refuses_numbers() -> None:
    metrics = agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry()).node_metrics("worker")
    registry = instances.DriverInstances(metrics=metrics, clock=clock.SystemClock(), on_gone=_no_farewell)
    with pytest.raises(errors.NodeError, match="none of services supported by the plugin"):
        registry.validate(DRIVER, "/dra.sock", ["1.0.0"])
    await asyncio.wait_for(registry.close(), timeout=60)
