"""Volumes in use by other pods, in other zones, or beyond limits: rejections in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from drachma.api import csidriver, csinode, meta, persistentvolume, persistentvolumeclaim, pod, volumeattachment
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.framework import hints
from drachma.scheduler.plugins import nodevolumelimits, volumerestrictions, volumezone
from drachma.scheduler.snapshot import Snapshot, kinds, podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler import worlds

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
DRIVER = "csi.example.com"


def a_claim(name: str, *modes: str, volume: str = "") -> persistentvolumeclaim.PersistentVolumeClaim:
    return persistentvolumeclaim.PersistentVolumeClaim(
        metadata=meta.ObjectMeta(name=name, namespace="default", uid=name, annotations=BOUND),
        spec=persistentvolumeclaim.PersistentVolumeClaimSpec(
            access_modes=modes or ("ReadWriteOnce",), volume_name=volume or f"volume-{name}"
        ),
        status=persistentvolumeclaim.PersistentVolumeClaimStatus(phase="Bound"),
    )


def a_volume(name: str, *, handle: str = "", **labels: str) -> persistentvolume.PersistentVolume:
    source = persistentvolume.CSIVolumeSource(driver=DRIVER, volume_handle=handle) if handle else None
    return persistentvolume.PersistentVolume(
        metadata=meta.ObjectMeta(name=name, labels=labels),
        spec=persistentvolume.PersistentVolumeSpec(csi=source),
    )


def of_claim(name: str) -> pod.Volume:
    return pod.Volume(name=name, persistent_volume_claim=pod.PersistentVolumeClaimVolume(claim_name=name))


def with_volumes(name: str, *volumes: pod.Volume, on: str = "") -> pod.Pod:
    built: pod.Pod = a_pod(name).uid(name).container("c").spec(volumes=volumes, node_name=on).build()
    return built


def a_world(**labels: dict[str, str]) -> worlds.World:
    world = worlds.World()
    for name in ("n1", "n2"):
        world.put_node(node(name, labels=labels.get(name, {})))
    return world


def put(world: worlds.World, *claims: str, handles: bool = False) -> None:
    for name in claims:
        world.snapshot.volumes.put_claim(a_claim(name))
        world.snapshot.volumes.put_volume(a_volume(f"volume-{name}", handle=name if handles else ""))


def why(world: worlds.World, waiting: pod.Pod) -> str:
    decided = world.decide(podinfo.PodInfo(waiting))
    assert isinstance(decided, Unfit)
    return decided.diagnosis.message()


def where(world: worlds.World, waiting: pod.Pod) -> str:
    decided = world.decide(podinfo.PodInfo(waiting))
    assert isinstance(decided, Placed)
    return decided.assignment.node


GCE = pod.Volume(name="d", gce_persistent_disk=pod.GCEDisk(pd_name="disk"))
GCE_READ = pod.Volume(name="d", gce_persistent_disk=pod.GCEDisk(pd_name="disk", read_only=True))
EBS = pod.Volume(name="d", aws_elastic_block_store=pod.EBSVolume(volume_id="disk"))
ISCSI = pod.Volume(name="d", iscsi=pod.ISCSIVolume(iqn="disk"))
ISCSI_READ = pod.Volume(name="d", iscsi=pod.ISCSIVolume(iqn="disk", read_only=True))
RBD = pod.Volume(name="d", rbd=pod.RBDVolume(monitors=("a", "b"), image="i", pool="p"))
RBD_BESIDE = pod.Volume(name="d", rbd=pod.RBDVolume(monitors=("b", "c"), image="i", pool="p", read_only=True))
RBD_APART = pod.Volume(name="d", rbd=pod.RBDVolume(monitors=("c",), image="i", pool="p"))


@pytest.mark.parametrize(
    ("theirs", "own", "is_kept_out"),
    [
        pytest.param(GCE, GCE_READ, True, id="gce-one-writes"),
        pytest.param(GCE_READ, GCE_READ, False, id="gce-both-read"),
        pytest.param(EBS, EBS, True, id="ebs"),
        pytest.param(ISCSI, ISCSI_READ, True, id="iscsi-one-writes"),
        pytest.param(ISCSI_READ, ISCSI_READ, False, id="iscsi-both-read"),
        pytest.param(RBD, RBD_BESIDE, True, id="rbd-one-writes"),
        pytest.param(RBD_BESIDE, RBD_BESIDE, False, id="rbd-both-read"),
        pytest.param(RBD, RBD_APART, False, id="rbd-of-other-monitors"),
        pytest.param(GCE, EBS, False, id="other-kinds"),
    ],
)
def test_disks_that_pods_of_a_node_cannot_share(theirs: pod.Volume, own: pod.Volume, is_kept_out: bool) -> None:
    world = a_world()
    for name in ("n1", "n2"):
        world.snapshot.add_pod(with_volumes(f"on-{name}", theirs, on=name))
    if is_kept_out:
        assert why(world, with_volumes("p", own)).startswith(
            "0/2 nodes are available: 2 node(s) had no available disk."
        )
        world.snapshot.remove_pod("on-n2")
        assert where(world, with_volumes("p", own)) == "n2"
    else:
        where(world, with_volumes("p", own))


def test_a_claim_for_one_pod_at_a_time() -> None:
    world = a_world()
    put(world, "c")
    world.snapshot.volumes.put_claim(a_claim("c", "ReadWriteOncePod"))
    where(world, with_volumes("p", of_claim("c")))
    world.snapshot.add_pod(with_volumes("user", of_claim("c"), on="n1"))
    want = (
        "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod"
    )
    assert want in why(world, with_volumes("p", of_claim("c")))
    world.snapshot.remove_pod("user")
    where(world, with_volumes("p", of_claim("c")))


@pytest.mark.parametrize(
    ("labels", "n1", "n2", "want"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, "n1", id="zone"),
        pytest.param({ZONE: "b__c"}, {ZONE: "a"}, {ZONE: "c"}, "n2", id="several-zones"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, "n1", id="old-label"),
        pytest.param({ZONE: "a"}, {}, {ZONE: "b"}, "n1", id="node-of-no-zone"),
        pytest.param({ZONE: "c"}, {ZONE: "a"}, {ZONE: "b"}, "", id="nowhere"),
    ],
)
def test_zones(labels: dict[str, str], n1: dict[str, str], n2: dict[str, str], want: str) -> None:
    world = a_world(n1=n1, n2=n2)
    world.snapshot.volumes.put_claim(a_claim("c"))
    world.snapshot.volumes.put_volume(a_volume("volume-c", **labels))
    if want:
        assert where(world, with_volumes("p", of_claim("c"))) == want
    else:
        assert "2 node(s) had no available volume zone" in why(world, with_volumes("p", of_claim("c")))


def limit(world: worlds.World, count: int, *nodes: str) -> None:
    driver = csinode.CSINodeDriver(name=DRIVER, allocatable=csinode.VolumeNodeResources(count=count))
    for name in nodes:
        spec = csinode.CSINodeSpec(drivers=(driver,))
        world.snapshot.volumes.put_driver_node(csinode.CSINode(metadata=meta.ObjectMeta(name=name), spec=spec))


def attachment(volume: str, on: str) -> volumeattachment.VolumeAttachment:
    return volumeattachment.VolumeAttachment(
        metadata=meta.ObjectMeta(name=f"{volume}-{on}"),
        spec=volumeattachment.VolumeAttachmentSpec(
            attacher=DRIVER,
            node_name=on,
            source=volumeattachment.VolumeAttachmentSource(persistent_volume_name=volume),
        ),
    )


def test_no_more_volumes_than_a_node_can_have() -> None:
    world = a_world()
    put(world, "a", "b", "c", handles=True)
    limit(world, 1, "n1", "n2")
    world.snapshot.add_pod(with_volumes("user", of_claim("a"), on="n1"))
    assert where(world, with_volumes("p", of_claim("b"))) == "n2"
    attached = attachment("volume-c", "n2")
    world.snapshot.volumes.put_attachment(attached)
    assert "2 node(s) exceed max volume count" in why(world, with_volumes("p", of_claim("b")))
    # An attached volume does not count twice.
    assert where(world, with_volumes("p", of_claim("a"))) == "n1"
    assert where(world, with_volumes("p", of_claim("c"))) == "n2"
    fork = world.snapshot.fork()
    world.snapshot.volumes.remove_attachment(attached)
    assert where(world, with_volumes("p", of_claim("b"))) == "n2"
    assert fork.volumes.attachments["n2"]


def test_a_driver_that_wants_pods_where_it_is() -> None:
    world = a_world()
    put(world, "a", handles=True)
    where(world, with_volumes("p", of_claim("a")))
    spec = csidriver.CSIDriverSpec(prevent_pod_scheduling_if_missing=True)
    world.snapshot.volumes.put_driver(csidriver.CSIDriver(metadata=meta.ObjectMeta(name=DRIVER), spec=spec))
    message = why(world, with_volumes("p", of_claim("a")))
    assert f"2 {DRIVER} CSI driver is not installed on the node" in message
    limit(world, 8, "n2")
    assert where(world, with_volumes("p", of_claim("a"))) == "n2"


def helps(of: Any, resource: hints.Resource, action: hints.Action, *objects: Any) -> bool:
    own: tuple[hints.Hint, ...] = of.hints(Snapshot)
    return any(hint.helps(*objects) for hint in own if hint.resource is resource and action in hint.actions)


def test_what_wakes_a_pod() -> None:
    waiting = with_volumes("p", of_claim("c"))
    going = with_volumes("user", of_claim("c"), on="n1")
    other = with_volumes("other", of_claim("d"), on="n1")
    restrictions = volumerestrictions.VolumeRestrictions()
    deleted = hints.Resource.ASSIGNED_POD, hints.Action.DELETE
    assert helps(restrictions, *deleted, waiting, going, None)
    assert not helps(restrictions, *deleted, waiting, other, None)
    limits = nodevolumelimits.NodeVolumeLimits()
    assert helps(limits, *deleted, waiting, other, None)
    assert not helps(limits, *deleted, waiting, with_volumes("plain", on="n1"), None)
    zones = volumezone.VolumeZone(has_controllers=True)
    updated = hints.Resource.PERSISTENT_VOLUME, hints.Action.UPDATE
    assert helps(zones, *updated, waiting, a_volume("v"), a_volume("v", **{ZONE: "a"}))
    assert not helps(zones, *updated, waiting, a_volume("v"), a_volume("v"))


def test_the_storage_capacity_of_drivers_and_volumes_in_the_tree_do_not_count() -> None:
    assert not [each.kind.__name__ for each in kinds.TABLE if "Capacity" in each.kind.__name__]
    world = a_world()
    limit(world, 0, "n1", "n2")
    disk = pod.Volume(name="v", aws_elastic_block_store=pod.EBSVolume(volume_id="vol-1"))
    assert where(world, with_volumes("p", disk)) in ("n1", "n2")
