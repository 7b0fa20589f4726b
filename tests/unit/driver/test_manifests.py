"""What a cluster needs to run a driver: it can be applied, and the policy holds drivers to their nodes."""

from collections.abc import Iterable

import pytest

from drachma import driver, errors
from drachma.api import meta, namespace, resourceslice
from drachma.api.v1alpha2 import resourceslice as alpha
from drachma.client import local
from drachma.driver import manifests
from drachma.process import embedded
from drachma.server import inprocess
from drachma.server.user import User
from drachma.store import memory
from drachma.testing import resource_slice
from tests import firstalpha

SETTINGS = manifests.Settings(image="registry.example.com/gpus:1", namespace="drivers")


class Gpus(driver.Driver):
    name = "gpu.example.com"


class Fabric(driver.Driver):
    name = "fabric.example.com"

    async def network_pools(self) -> Iterable[driver.Pool]:
        return ()


def test_a_driver_of_a_node() -> None:
    kinds = [each["kind"] for each in manifests.documents(Gpus, SETTINGS)]
    assert kinds == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "DaemonSet",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "DeviceClass",
    ]


def test_a_driver_with_pools_of_a_network_has_a_controller() -> None:
    kinds = [each["kind"] for each in manifests.documents(Fabric, SETTINGS)]
    assert kinds[-4:] == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"]


async def _install(server: embedded.Server) -> local.LocalClient:
    """Applies the manifests of two drivers; the client of one of them, in its pod on worker-1."""
    await server.client.create_document(
        namespace.Namespace, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "drivers"}}
    )
    resources = {(each.group, each.kind): each for each in reversed(await server.client.resources())}
    for document in manifests.documents(Fabric, SETTINGS) + manifests.documents(Gpus, SETTINGS):
        group = document["apiVersion"].rpartition("/")[0]
        await server.client.create_document(resources[group, document["kind"]], document)
    account = User(
        name="system:serviceaccount:drivers:gpu-example-com",
        groups=("system:masters",),
        extra={"authentication.kubernetes.io/node-name": ("worker-1",)},
    )
    return local.LocalClient(inprocess.InProcess(server.application.dispatcher, user=account))


async def test_they_can_be_applied_and_hold_a_driver_to_its_node() -> None:
    async with embedded.server(memory.MemoryStore()) as server:
        own = await _install(server)
        made = resource_slice("a", driver=Gpus.name).on_node("worker-1").devices("gpu-0").build()
        await own.create(made)
        refused = [
            (resource_slice("b", driver=Gpus.name).on_node("worker-2"), "slices of node worker-1 only"),
            (
                resource_slice("c", driver="nic.example.com").on_node("worker-1"),
                "slices of driver gpu.example.com only",
            ),
            (resource_slice("d", driver=Gpus.name).on_all_nodes(), "slices of node worker-1 only"),
        ]
        for each, want in refused:
            with pytest.raises(errors.RefusedError, match=want):
                await own.create(each.build())
        await server.client.create(resource_slice("e", driver=Gpus.name).on_node("worker-2").build())
        with pytest.raises(errors.RefusedError, match="slices of node worker-1 only"):
            await own.delete(resourceslice.ResourceSlice, "e")
        await own.delete(resourceslice.ResourceSlice, "a")


@pytest.mark.parametrize("node", ["worker-1", "worker-2"])
async def test_a_driver_of_today_publishes_nothing_in_the_first_alpha(node: str) -> None:
    """Its policy has all versions of slices; those of another shape are not what it publishes."""
    async with embedded.server(memory.MemoryStore(), gates=firstalpha.GATES) as server:
        own = await _install(server)
        made = alpha.ResourceSlice(metadata=meta.ObjectMeta(name="a"), node_name=node, driver_name="nic.example.com")
        with pytest.raises(errors.RefusedError, match="slices of node worker-1 only"):
            await own.create(made)
        await server.client.create(made)
        with pytest.raises(errors.RefusedError, match="slices of node worker-1 only"):
            await own.delete(alpha.ResourceSlice, "a")
