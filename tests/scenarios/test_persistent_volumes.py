"""Volumes and claims: bound at once or with a pod, made on demand, and what becomes of them after their claims."""

import pathlib
from typing import Any

from drachma.api import persistentvolume, persistentvolumeclaim, pod
from drachma.client import patches
from drachma.node.setup.volumes import localprovisioner
from drachma.runtime import Surroundings, controller
from tests import patience
from tests.scenarios import controlplane
from tests.scenarios.controlplane import ControlPlane

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume


def _volume(name: str, size: str, *, storage_class: str = "manual") -> str:
    return f"""
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: {size}}}
  accessModes: [ReadWriteOnce]
  storageClassName: {storage_class}
  hostPath: {{path: /data/{name}}}
"""


def _claim(name: str, size: str, *, more: str = "storageClassName: manual") -> str:
    return f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}, {more}}}
"""


async def _phase(cluster: ControlPlane, kind: type[Any], name: str) -> str:
    found = await cluster.find(kind, name)
    assert found is not None
    phase: str = found.status.phase
    return phase


async def test_a_claim_gets_the_smallest_volume_that_will_do() -> None:
    async with controlplane.control_plane() as cluster:
        await cluster.apply(_volume("small", "1Gi"), _volume("large", "9Gi"), _volume("middle", "5Gi"))
        await cluster.settle()
        assert await _phase(cluster, Volume, "middle") == "Available"
        await cluster.apply(_claim("c", "2Gi"))
        await cluster.settle()
        document = await cluster.client.get_document(Claim, "c", namespace="default")
        assert document["spec"]["volumeName"] == "middle"
        (condition,) = document["status"].pop("conditions")
        assert (condition["type"], condition["status"]) == ("Unused", "True")
        assert document["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "5Gi"},
        }
        assert document["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        assert await _phase(cluster, Volume, "middle") == "Bound"
        await cluster.client.delete(Claim, "c", namespace="default")
        await cluster.settle()
        assert await _phase(cluster, Volume, "middle") == "Released"


async def test_what_claims_wait_for_is_said() -> None:
    async with controlplane.control_plane() as cluster:
        await cluster.apply(
            """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: later}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: outside}
provisioner: disks.example.com
""",
            _claim("later", "1Gi", more="storageClassName: later"),
            _claim("none", "1Gi", more='storageClassName: ""'),
            _claim("outside", "1Gi", more="storageClassName: outside"),
            _claim("named", "1Gi", more='storageClassName: "", volumeName: taken'),
        )
        await cluster.settle()
        assert await cluster.events("WaitForFirstConsumer") == [
            "waiting for first consumer to be created before binding"
        ]
        assert await cluster.events("FailedBinding") == [
            "no persistent volumes available for this claim and no storage class is set"
        ]
        (waiting,) = await cluster.events("ExternalProvisioning")
        assert "by the external provisioner 'disks.example.com' or manually" in waiting
        asked = await cluster.find(Claim, "outside")
        assert asked is not None
        assert asked.metadata.annotations["volume.kubernetes.io/storage-provisioner"] == "disks.example.com"
        assert await _phase(cluster, Claim, "named") == "Pending"


async def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async with controlplane.control_plane() as cluster:
        await cluster.apply(_volume("only", "1Gi"), _claim("c", "1Gi"))
        await cluster.settle()
        assert await _phase(cluster, Claim, "c") == "Bound"
        await cluster.client.delete(Volume, "only")
        await cluster.settle()
        # It is kept for the claim, unless somebody knows better.
        assert await _phase(cluster, Claim, "c") == "Bound"
        await cluster.client.patch(Volume, "only", patch=patches.merge({"metadata": {"finalizers": None}}))
        await cluster.settle()
        assert await _phase(cluster, Claim, "c") == "Lost"
        assert await cluster.events("ClaimLost") == [
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        ]


async def test_a_volume_is_made_where_the_pod_goes_and_goes_with_its_claim(tmp_path: pathlib.Path) -> None:
    def provisioner(around: Surroundings) -> Any:
        built = localprovisioner.LocalProvisioner(around, tmp_path)
        return lambda: controller.run_all(around, [built])

    async with controlplane.control_plane() as cluster:
        cluster.launch("provisioner", provisioner)
        await cluster.apply(
            """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "10"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
""",
            _claim("c", "1Gi", more="volumeMode: Filesystem"),
        )
        await cluster.advance(30)
        placed = await cluster.find(pod.Pod, "p")
        assert placed is not None
        assert placed.spec.node_name == "n1"
        claim = await cluster.find(Claim, "c")
        assert claim is not None
        assert (claim.status.phase, claim.spec.storage_class_name) == ("Bound", "local")
        (folder,) = tmp_path.iterdir()
        assert folder.name == claim.spec.volume_name == f"pvc-{claim.metadata.uid}"
        await cluster.client.delete(Claim, "c", namespace="default")
        await cluster.settle()
        assert await _phase(cluster, Claim, "c") == "Bound"
        await cluster.client.delete(pod.Pod, "p", namespace="default", grace_period_seconds=0)
        await cluster.settle()
        # Directories are removed by a thread, which no clock moves.
        await patience.until_async(
            lambda: cluster.find(Volume, folder.name), lambda volume: volume is None, what="the volume goes"
        )
        assert not folder.exists()
