"""Volumes and claims stay while they are in use, and claims say whether they are."""

from typing import Any

from drachma.api import event, meta, persistentvolume, persistentvolumeclaim, pod
from drachma.controllers import volumeprotection
from drachma.controllers.persistentvolume import bindings
from tests.unit.controllers import worlds

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}},
}


def _pod(name: str, node: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "nodeName": node,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        },
    }


async def _unused(world: worlds.World) -> list[tuple[str, str]]:
    claim = await world.client.get(Claim, "c", namespace="default")
    return [(each.status, each.reason) for each in claim.status.conditions if each.type == "Unused"]


async def test_a_claim_stays_while_a_pod_on_a_node_uses_it() -> None:
    async with worlds.world(volumeprotection.VolumeClaimProtection) as world:
        await world.client.create_document(Claim, CLAIM)
        await world.settle()
        claim = await world.client.get(Claim, "c", namespace="default")
        assert claim.metadata.finalizers == ("kubernetes.io/pvc-protection",)
        assert await _unused(world) == []
        await world.patch_status(claim, {"phase": "Bound"})
        await world.settle()
        assert await _unused(world) == [("True", "NoPodsUsingPVC")]

        await world.client.create_document(pod.Pod, _pod("user", node="n"))
        await world.settle()
        assert await _unused(world) == [("False", "PodUsingPVC")]
        await world.client.delete(Claim, "c", namespace="default")
        await world.settle()
        assert (await world.client.get(Claim, "c", namespace="default")).metadata.deletion_timestamp is not None
        # A pod without a node is not let in any more, and keeps nothing.
        await world.client.create_document(pod.Pod, _pod("late"))
        await world.client.delete(pod.Pod, "user", namespace="default", grace_period_seconds=0)
        await world.settle()
        assert await world.find(Claim, "c") is None


async def test_a_volume_stays_while_a_claim_has_it() -> None:
    async with worlds.world(volumeprotection.VolumeProtection) as world:
        await world.client.create_document(Volume, VOLUME)
        await world.settle()
        volume = await world.client.get(Volume, "v")
        assert volume.metadata.finalizers == ("kubernetes.io/pv-protection",)
        await world.patch_status(volume, {"phase": "Bound"})
        await world.client.delete(Volume, "v")
        await world.settle()
        volume = await world.client.get(Volume, "v")
        await world.patch_status(volume, {"phase": "Released"})
        await world.settle()
        assert await world.find(Volume, "v", "") is None


def test_volumes_are_released_and_never_recycled() -> None:
    spec = persistentvolume.PersistentVolumeSpec(
        persistent_volume_reclaim_policy="Recycle",
        claim_ref=event.ObjectReference(name="gone", namespace="default", uid="u"),
    )
    volume = persistentvolume.PersistentVolume(metadata=meta.ObjectMeta(name="v"), spec=spec)
    assert bindings.decide_volume(volume, None) == bindings.VolumePhase(bindings.RELEASED)
