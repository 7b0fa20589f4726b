"""Volumes in a running scheduler: what it writes for claims that wait for a pod, and how long the pod waits."""

from __future__ import annotations

from typing import Any

import pytest

from drachma.api import pod
from drachma.client import patches, target
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

HOST = "kubernetes.io/hostname"
CLASSES = target.metadata_of("storage.k8s.io", "v1", plural="storageclasses", kind="StorageClass", namespaced=False)
VOLUMES = target.metadata_of("", "v1", plural="persistentvolumes", kind="PersistentVolume", namespaced=False)
CLAIMS = target.metadata_of("", "v1", plural="persistentvolumeclaims", kind="PersistentVolumeClaim", namespaced=True)


async def prepared(world: schedulers.SchedulerWorld, provisioner: str = "kubernetes.io/no-provisioner") -> None:
    await world.create(node("n1", labels={HOST: "n1"}), node("n2", labels={HOST: "n2"}))
    await world.client.create_document(
        CLASSES,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    await world.client.create_document(
        CLAIMS,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    await world.settle()


async def put_volume(world: schedulers.SchedulerWorld, name: str, *, on: str) -> None:
    expression = {"key": HOST, "operator": "In", "values": [on]}
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }
    await world.client.create_document(VOLUMES, document)
    available = patches.merge({"status": {"phase": "Available"}})
    await world.client.patch(VOLUMES, name, patch=available, subresource="status")
    await world.settle()


async def bind(world: schedulers.SchedulerWorld, volume: str) -> None:
    """What a controller does."""
    change = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    }
    await world.client.patch(CLAIMS, "data", namespace="default", patch=patches.merge(change))
    await world.settle()


def user() -> Any:
    volume = pod.Volume(name="d", persistent_volume_claim=pod.PersistentVolumeClaimVolume(claim_name="data"))
    return a_pod("p").container("c").spec(volumes=(volume,))


async def test_a_volume_is_given_to_the_claim_and_the_pod_waits_until_it_is_bound() -> None:
    async with schedulers.cluster() as world:
        await prepared(world)
        await world.create(user())
        assert (await world.why("p")).startswith(
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
        )
        await put_volume(world, "v", on="n2")
        await world.advance(2)
        given = await world.client.get(VOLUMES, "v")
        claim = await world.client.get(CLAIMS, "data", namespace="default")
        assert given.metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert await world.node_of("p") == ""
        await bind(world, "v")
        await world.advance(2)
        assert await world.node_of("p") == "n2"
        assert claim.metadata.name == "data"


async def test_a_provisioner_learns_where_the_volume_is_needed() -> None:
    async with schedulers.cluster() as world:
        await prepared(world, "example.com/disks")
        await world.create(user())
        claim = await world.client.get(CLAIMS, "data", namespace="default")
        chosen = claim.metadata.annotations["volume.kubernetes.io/selected-node"]
        assert chosen in ("n1", "n2")
        await put_volume(world, "made", on=chosen)
        await bind(world, "made")
        await world.advance(2)
        assert await world.node_of("p") == chosen


async def test_a_pod_does_not_wait_for_ever() -> None:
    async with schedulers.cluster(binding_seconds=60.0) as world:
        await prepared(world, "example.com/disks")
        await world.create(user())
        await world.advance(61)
        assert await world.why("p") == (
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        )


@pytest.mark.parametrize(
    ("has_controllers", "want"), [pytest.param(True, "", id="controllers"), pytest.param(False, "n", id="none")]
)
async def test_nobody_waits_for_volumes_where_nobody_binds_them(has_controllers: bool, want: str) -> None:
    async with schedulers.cluster(has_volume_controllers=has_controllers) as world:
        await prepared(world)
        await world.create(user())
        assert (await world.node_of("p"))[:1] == want
