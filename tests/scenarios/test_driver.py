"""A driver on a node: what others see of it, from its start to its end."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

import grpc
import grpc.aio
import prometheus_client
import pytest

from drachma import driver, errors
from drachma.api import gates, resourceslice
from drachma.client import Client
from drachma.node import agentmetrics
from drachma.node.drivers import plugins
from drachma.nodewire.rpc import services
from drachma.runtime import Surroundings
from tests.scenarios import drivers

PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


class Gpus(driver.Driver):
    name = "gpu.example.com"

    def __init__(self, count: int = 2) -> None:
        super().__init__()
        self.count = count
        self.calls: list[str] = []
        self.is_healthy = True

    async def pools(self) -> Iterable[driver.Pool]:
        return [driver.pool(self.node, [driver.device(f"gpu-{number}") for number in range(self.count)])]

    async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits]:
        self.calls.append(f"prepare {claim}")
        return {device: driver.edits(env={"GPU": device.name}) for device in claim.devices}

    async def unprepare(self, reference: driver.ClaimReference) -> None:
        self.calls.append(f"unprepare {reference}")

    async def health(self) -> Iterable[driver.Health]:
        status = driver.Status.HEALTHY if self.is_healthy else driver.Status.UNHEALTHY
        return [driver.Health(pool=self.node, device="gpu-0", status=status)]


async def test_slices_are_there_when_it_is_ready_and_stay_when_it_stops() -> None:
    async with drivers.machine() as machine:
        async with machine.running(Gpus(130)):
            slices = await machine.slices()
            assert [len(each.spec.devices) for each in slices] == [128, 2]
            assert {each.spec.node_name for each in slices} == {"worker"}
            assert {each.metadata.owner_references[0].kind for each in slices} == {"Node"}
        assert len(await machine.slices()) == 2
        place = machine.place(Gpus)
        assert not place.endpoints.dra.exists()
        assert not place.endpoints.registration.exists()


async def test_changed_publishes_what_is_there_now() -> None:
    async with drivers.machine() as machine:
        made = Gpus(2)
        async with machine.running(made) as instance:
            made.count = 3
            made.changed()
            assert not instance.is_visible
            await asyncio.wait_for(_until_devices(machine, 3), drivers.WAIT_SECONDS)


async def test_slices_that_somebody_deletes_come_back() -> None:
    async with drivers.machine() as machine, machine.running(Gpus(2)) as instance:
        (before,) = await machine.slices()
        await machine.client.delete(resourceslice.ResourceSlice, before.metadata.name)
        await asyncio.wait_for(_until_devices(machine, 2), drivers.WAIT_SECONDS)
        await asyncio.wait_for(instance.wait_visible(), drivers.WAIT_SECONDS)


async def _until_devices(machine: drivers.Machine, count: int) -> None:
    while sum(len(each.spec.devices) for each in await machine.slices()) != count:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_claim_from_prepare_to_unprepare(version: int) -> None:
    async with drivers.machine() as machine:
        claim = await drivers.allocated(machine.client, "c", of=Gpus.name, devices=["gpu-1"])
        asked = drivers.reference(claim)
        made = Gpus()
        async with machine.running(made):
            for _ in range(2):
                answers = await machine.call(Gpus, PREPARE, asked, version=version)
                (device,) = answers[claim.metadata.uid].devices
                assert (device.pool_name, device.device_name) == ("worker", "gpu-1")
            (file,) = (machine.folder / "c").iterdir()
            spec = json.loads(file.read_text())
            assert spec["devices"][0]["containerEdits"] == {"env": ["GPU=gpu-1"]}
            assert list(device.cdi_device_ids) == [f"{spec['kind']}={spec['devices'][0]['name']}"]
            for _ in range(2):
                answers = await machine.call(Gpus, UNPREPARE, asked, version=version)
                assert answers[claim.metadata.uid].error == ""
            assert not list((machine.folder / "c").iterdir())
        assert made.calls == ["prepare default/c", "unprepare default/c"]


async def test_health_is_told_and_told_again() -> None:
    async with drivers.machine() as machine:
        made = Gpus()
        async with machine.running(made):
            path = machine.place(Gpus).endpoints.dra
            async with services.channel(path) as channel:
                (method,) = services.HEALTH[0].methods
                reports = services.stream(channel, services.HEALTH[0], method.name, method.request())
                assert [each.health for each in (await reports.read()).devices] == [1]
                made.is_healthy = False
                made.changed()
                assert [each.health for each in (await reports.read()).devices] == [2]


async def test_a_driver_that_cannot_look_keeps_its_slices() -> None:
    has_failed = asyncio.Event()

    class Shaky(Gpus):
        async def pools(self) -> Iterable[driver.Pool]:
            if self.count < 0:
                has_failed.set()
                raise RuntimeError("cannot look")
            return await super().pools()

    async with drivers.machine() as machine:
        made = Shaky(2)
        async with machine.running(made) as instance:
            made.count = -1
            made.changed()
            await asyncio.wait_for(has_failed.wait(), drivers.WAIT_SECONDS)
            assert not instance.is_visible
            assert [len(each.spec.devices) for each in await machine.slices()] == [2]


async def test_fields_that_a_cluster_drops_are_told(caplog: pytest.LogCaptureFixture) -> None:
    class Sick(Gpus):
        async def pools(self) -> Iterable[driver.Pool]:
            return [driver.pool(self.node, [driver.device("gpu-0").taint("example.com/sick").shared()])]

    off = {gates.Gate.DEVICE_TAINTS, gates.Gate.CONSUMABLE_CAPACITY}
    features = gates.Gates(gates.ALL.enabled - off)
    with caplog.at_level("ERROR"):
        async with drivers.machine(features=features) as machine, machine.running(Sick()):
            (stored,) = await machine.slices()
            assert not stored.spec.devices[0].taints
    record = caplog.records[0]
    assert "some fields were dropped by the apiserver" in record.getMessage()
    assert set(vars(record)["features"]) == off


async def test_what_a_driver_keeps_is_there_after_a_restart() -> None:
    class Keeper(Gpus):
        async def start(self) -> None:
            path = self.state_directory / "starts"
            path.write_text(f"{path.read_text() if path.exists() else ''}x")

    async with drivers.machine() as machine:
        for _ in range(3):
            async with machine.running(Keeper()):
                pass
        state = machine.place(Keeper).plugins / "state"
        assert (state / "starts").read_text() == "xxx"
        assert state.stat().st_mode & 0o777 == 0o700


def test_a_driver_that_does_not_run_has_no_state() -> None:
    with pytest.raises(errors.DriverError, match="it does not run on a node"):
        _ = Gpus().state_directory


async def test_a_claim_that_does_not_exist_is_not_found() -> None:
    async with drivers.machine() as machine, machine.running(Gpus()):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await machine.call(Gpus, PREPARE, {"namespace": "default", "name": "nowhere", "uid": "u"})
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert 'retrieve claim default/nowhere: resourceclaims.resource.k8s.io "nowhere" not found' in str(
            caught.value.details()
        )


class Fabric(Gpus):
    """Its node's devices, and a network's, which its controller publishes."""

    async def network_pools(self) -> Iterable[driver.Pool]:
        return ()


@pytest.mark.parametrize(
    ("pool", "device", "want"),
    [
        pytest.param("worker", "gpu-0", "", id="its-own"),
        pytest.param("worker", "gpu-7", "gpu.example.com/worker/gpu-7", id="never-published"),
        pytest.param("other", "gpu-0", "gpu.example.com/other/gpu-0", id="of-another-node"),
        pytest.param("street", "lamp", "", id="of-a-network"),
        pytest.param("far-street", "lamp", "gpu.example.com/far-street/lamp", id="of-a-network-that-it-does-not-reach"),
    ],
)
async def test_only_published_devices_are_prepared(pool: str, device: str, want: str) -> None:
    async with drivers.machine() as machine:
        for name, placement, devices in (
            ("other", {"nodeName": "other"}, ["gpu-0"]),
            ("street", {"allNodes": True}, ["lamp"]),
            ("far-street", {"nodeSelector": _NOWHERE}, ["lamp"]),
        ):
            await machine.client.create_document(
                resourceslice.ResourceSlice,
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": name},
                    "spec": {
                        "driver": Gpus.name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                        "devices": [{"name": each} for each in devices],
                        **placement,
                    },
                },
            )
        claim = await drivers.allocated(machine.client, "c", of=Gpus.name, devices=[device], pool=pool)
        made = Fabric()
        async with machine.running(made):
            answers = await machine.call(Fabric, PREPARE, drivers.reference(claim))
        error = f"device unavailable: {want} is not published for node worker" if want else ""
        assert answers[claim.metadata.uid].error == error
        assert made.calls == ([] if want else ["prepare default/c"])


_NOWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "street", "operator": "Exists"}]}]}


async def test_a_device_that_is_withdrawn_is_not_prepared_any_more() -> None:
    async with drivers.machine() as machine:
        made = Gpus(2)
        claim = await drivers.allocated(machine.client, "c", of=Gpus.name, devices=["gpu-1"])
        async with machine.running(made):
            made.count = 1
            made.changed()
            await asyncio.wait_for(_until_devices(machine, 1), drivers.WAIT_SECONDS)
            answers = await machine.call(Gpus, PREPARE, drivers.reference(claim))
            assert "gpu-1 is not published" in answers[claim.metadata.uid].error
            made.count = 2
            made.changed()
            await asyncio.wait_for(_until_devices(machine, 2), drivers.WAIT_SECONDS)
            answers = await machine.call(Gpus, PREPARE, drivers.reference(claim))
            assert answers[claim.metadata.uid].error == ""


async def test_a_driver_can_say_that_a_device_is_gone() -> None:
    class Honest(Gpus):
        async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits]:
            raise driver.DeviceUnavailableError("gpu-0 fell off the bus")

    async with drivers.machine() as machine, machine.running(Honest()):
        claim = await drivers.allocated(machine.client, "c", of=Gpus.name, devices=["gpu-0"])
        answers = await machine.call(Honest, PREPARE, drivers.reference(claim))
        assert answers[claim.metadata.uid].error == "device unavailable: gpu-0 fell off the bus"


async def test_a_node_that_may_not_delete_slices_registers_drivers_all_the_same() -> None:
    refusals = 0

    async with drivers.machine() as machine:

        class Refusing:
            """A client that may not delete slices, for a while."""

            def __getattr__(self, name: str) -> Any:
                return getattr(machine.client, name)

            async def delete_collection(self, *_arguments: Any, **_more: Any) -> None:
                nonlocal refusals
                refusals += 1
                if refusals < 3:
                    raise errors.ForbiddenError({"message": "may not delete", "code": 403, "reason": "Forbidden"})

        around = Surroundings(machine.client)
        has_driver = asyncio.Event()
        agent = plugins.Plugins(
            machine.name,
            machine.folder / "r",
            client=cast(Client, Refusing()),
            metrics=agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry()).node_metrics(machine.name),
            queues=around.queues,
            clock=around.clock,
            on_driver=has_driver.set,
            on_health=lambda _driver, _devices: None,
            gates=gates.ALL,
        )
        async with machine.running(Gpus()):
            task = asyncio.create_task(agent.run(lambda: None))
            try:
                await asyncio.wait_for(has_driver.wait(), drivers.WAIT_SECONDS)
                assert refusals == 1, "the removal is tried again while drivers are served"
                async with asyncio.timeout(drivers.WAIT_SECONDS):
                    while refusals < 3:
                        await asyncio.sleep(0.05)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
