"""Clusters of the test kit: actions of a test, and messages of failures."""

import asyncio
import pathlib
from collections.abc import Iterable, Mapping

import pytest
from typer.testing import CliRunner

from drachma import driver, errors, testing
from drachma.api import gates, manifest, pod
from drachma.cli import root
from drachma.simulate import clusterstate
from drachma.testing import syncclusters
from drachma.testing.pytestplugin import drachma_cluster as drachma_cluster  # also where drachma is not installed

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev, count: COUNT}}]
"""
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: team}
spec: {hard: {count/resourceclaims.resource.k8s.io: 0}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
  containers: [{name: c, image: busybox, resources: {claims: [{name: gpus}]}}]
"""


def _wants(count: int) -> str:
    return TEMPLATE.replace("COUNT", str(count)) + "---" + POD


async def test_a_pod_runs_with_its_devices() -> None:
    async with testing.cluster(nodes=2) as c:
        await c.apply(_wants(2))
        running = await c.pod("train").running()
        assert running.node in ("node-0", "node-1")
        assert running.devices == tuple(c.devices_of("train"))
        assert [each.rpartition("/")[2] for each in running.devices] == ["gpu-0", "gpu-1"]
        await c.delete(pod.Pod, "train")
        await c.pod("train").gone()


async def test_what_is_applied_again_is_changed() -> None:
    async with testing.cluster() as c:
        config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: VALUE}"
        await c.apply(config_map.replace("VALUE", "one"))
        await c.apply(config_map.replace("VALUE", "two"))
        resources = {each.kind: each for each in await c.client.resources()}
        document = await c.client.get_document(resources["ConfigMap"], "m", namespace="default")
        assert document["data"] == {"a": "two"}


async def test_a_pod_that_cannot_be_placed_is_explained() -> None:
    async with testing.cluster() as c:
        await c.apply(_wants(9))
        assert "cannot allocate all claims" in await c.pod("train").waiting()
        explanation = c.explain("train")
        assert explanation.startswith("pod default/train: waits: ")
        assert "does not fit" in explanation
        with pytest.raises(AssertionError, match="is not Running: pod default/train: waits"):
            await c.pod("train").running()


async def test_a_quota_that_holds_back_a_claim_is_explained() -> None:
    async with testing.cluster() as c:
        await c.apply(QUOTA + "---" + _wants(1))
        await c.advance(5)
        assert "claim gpus of pod default/train is not created: exceeded quota: team" in c.explain("train")


async def test_explanations_are_those_of_the_command(tmp_path: pathlib.Path) -> None:
    async with testing.cluster() as c:
        await c.apply(_wants(9))
        await c.pod("train").waiting()
        explanation = c.explain("train").splitlines()
        documents = [
            await c.client.get_document(kind, each.metadata.name, namespace=each.metadata.namespace)
            for kind in clusterstate.served_kinds(gates.ALL)
            for each in (await c.client.list(kind)).items
        ]
    (tmp_path / "dump.yaml").write_text(manifest.write_yaml(documents))
    command = ["explain", "pod", "train", "--verbose", "-f", str(tmp_path / "dump.yaml")]
    result = await asyncio.to_thread(CliRunner().invoke, root.app, command)
    assert result.stdout.splitlines() == explanation[1:]


async def test_time_passes_on_demand() -> None:
    async with testing.cluster() as c:
        before = c.clock.utc()
        await c.advance(3600)
        assert (c.clock.utc() - before).total_seconds() == 3600


async def test_what_is_not_served_is_refused() -> None:
    async with testing.cluster() as c:
        with pytest.raises(errors.DecodeError, match="Toy is not served"):
            await c.apply("apiVersion: example.com/v1\nkind: Toy\nmetadata: {name: t}")


def test_without_async() -> None:
    with syncclusters.sync_cluster(profile="gpu-server") as c:
        c.apply(_wants(1))
        assert c.pod("train").running().devices == ("gpu.simulation.drachma.dev/node-0/gpu-0",)
        c.delete(pod.Pod, "train")
        c.pod("train").gone()
        assert c.get_pod("train") is None


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(errors.InvalidValueError, match="profile 'no'"), syncclusters.sync_cluster(profile="no"):
        pass


@pytest.mark.drachma(nodes=3)
def test_the_fixture(drachma_cluster: syncclusters.SyncCluster) -> None:
    drachma_cluster.apply(_wants(1))
    assert drachma_cluster.pod("train").running().phase == "Running"


class Lamps(driver.Driver):
    """Driver as a user would write it."""

    name = "lamp.example.com"

    async def pools(self) -> Iterable[driver.Pool]:
        return [driver.pool(self.node, [driver.device("lamp-0"), driver.device("lamp-1")])]

    async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits]:
        return {device: driver.edits(env={"LAMP": device.name}) for device in claim.devices}

    async def unprepare(self, reference: driver.ClaimReference) -> None:
        pass


async def test_a_driver_of_ones_own() -> None:
    async with testing.cluster(profile="cpu", drivers=[Lamps]) as c:
        device_class = (
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: lamp.example.com}\n"
            "spec: {selectors: [{cel: {expression: 'device.driver == \"lamp.example.com\"'}}]}"
        )
        await c.apply(device_class, _wants(1).replace("gpu.simulation.drachma.dev", "lamp.example.com"))
        running = await c.pod("train").running()
        assert running.devices == ("lamp.example.com/node-0/lamp-0",)
        await c.delete(pod.Pod, "train")
        await c.pod("train").gone()


class BrokenLamps(Lamps):
    """Driver whose preparation fails."""

    async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits]:
        raise errors.DriverError("the bulb is broken")


async def test_a_failing_driver_is_named_within_the_timeout() -> None:
    """A test of a driver that fails takes the seconds that it allows, and its message has the driver's error."""
    async with testing.cluster(profile="cpu", drivers=[BrokenLamps]) as c:
        device_class = (
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: lamp.example.com}\n"
            "spec: {selectors: [{cel: {expression: 'device.driver == \"lamp.example.com\"'}}]}"
        )
        await c.apply(device_class, _wants(1).replace("gpu.simulation.drachma.dev", "lamp.example.com"))
        with pytest.raises(AssertionError, match=r"FailedPrepareDynamicResources: .*the bulb is broken"):
            await c.pod("train").running(timeout=3)


async def test_a_pod_that_has_ended_is_not_awaited() -> None:
    async with testing.cluster() as c:
        ends = POD.replace("image: busybox,", "image: busybox, command: ['false'],").replace(
            "spec:\n", "spec:\n  restartPolicy: Never\n", 1
        )
        await c.apply(TEMPLATE.replace("COUNT", "1"), ends)
        await c.pod("train").failed()
        before = c.clock.monotonic()
        with pytest.raises(AssertionError, match="is not Running"):
            await c.pod("train").running()
        assert c.clock.monotonic() == before
