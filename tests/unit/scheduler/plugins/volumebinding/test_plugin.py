"""Volumes: the nodes that they allow, and the volumes that claims get there."""

from __future__ import annotations

from typing import Any

import pytest

from drachma.api import event, meta, nodeselector, persistentvolume, persistentvolumeclaim, pod, storageclass
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from drachma.values.quantity import Quantity
from tests.unit.scheduler import worlds

HOST = "kubernetes.io/hostname"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def a_volume(name: str, on: str = "", *, size: str = "10Gi", phase: str = "Available", **spec: Any) -> Any:
    affinity = None
    if on:
        expression = nodeselector.NodeSelectorRequirement(key=HOST, operator="In", values=(on,))
        term = nodeselector.NodeSelectorTerm(match_expressions=(expression,))
        required = nodeselector.NodeSelector(node_selector_terms=(term,))
        affinity = persistentvolume.VolumeNodeAffinity(required=required)
    return persistentvolume.PersistentVolume(
        metadata=meta.ObjectMeta(name=name),
        spec=persistentvolume.PersistentVolumeSpec(
            **{
                "capacity": {"storage": Quantity.parse(size)},
                "access_modes": ("ReadWriteOnce",),
                "storage_class_name": "local",
                "node_affinity": affinity,
                **spec,
            }
        ),
        status=persistentvolume.PersistentVolumeStatus(phase=phase),
    )


def a_claim(name: str, *, size: str = "5Gi", phase: str = "Pending", **fields: Any) -> Any:
    metadata = meta.ObjectMeta(
        name=name, namespace="default", uid=name, **{key: fields.pop(key) for key in ("annotations",) if key in fields}
    )
    wanted = persistentvolumeclaim.VolumeResourceRequirements(requests={"storage": Quantity.parse(size)})
    return persistentvolumeclaim.PersistentVolumeClaim(
        metadata=metadata,
        spec=persistentvolumeclaim.PersistentVolumeClaimSpec(
            **{
                "access_modes": ("ReadWriteOnce",),
                "storage_class_name": "local",
                "resources": wanted,
                **fields,
            }
        ),
        status=persistentvolumeclaim.PersistentVolumeClaimStatus(phase=phase),
    )


def a_class(name: str = "local", provisioner: str = storageclass.NO_PROVISIONER, **fields: Any) -> Any:
    return storageclass.StorageClass(
        metadata=meta.ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=storageclass.WAIT_FOR_FIRST_CONSUMER,
        **fields,
    )


def a_world(*objects: Any) -> worlds.World:
    world = worlds.World()
    for name in ("n1", "n2", "n3"):
        world.put_node(node(name, labels={HOST: name}))
    for each in objects:
        match each:
            case persistentvolume.PersistentVolume():
                world.snapshot.volumes.put_volume(each)
            case persistentvolumeclaim.PersistentVolumeClaim():
                world.snapshot.volumes.put_claim(each)
            case _:
                world.snapshot.volumes.put_class(each)
    return world


def using(*claims: str) -> podinfo.PodInfo:
    volumes = tuple(
        pod.Volume(name=name, persistent_volume_claim=pod.PersistentVolumeClaimVolume(claim_name=name))
        for name in claims
    )
    return podinfo.PodInfo(a_pod("p").uid("p").container("c").spec(volumes=volumes).build())


def why(world: worlds.World, info: podinfo.PodInfo) -> str:
    decided = world.decide(info)
    assert isinstance(decided, Unfit)
    return decided.diagnosis.message()


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="no-claim"),
        pytest.param(
            [a_claim("c", phase="Lost", volume_name="v")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="lost-claim",
        ),
        pytest.param([a_claim("c")], "pod has unbound immediate PersistentVolumeClaims", id="unbound-claim"),
        pytest.param(
            [a_class(), a_claim("c", volume_name="v"), a_volume("v")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="claim-that-is-not-bound-for-good",
        ),
        pytest.param(
            [a_claim("c", volume_name="v", annotations=BOUND)],
            'persistentvolume "v" not found',
            id="no-volume",
        ),
        pytest.param(
            [a_claim("c", volume_name="v", annotations=BOUND), a_volume("v", "n9")],
            "3 node(s) didn't match PersistentVolume's node affinity",
            id="volume-elsewhere",
        ),
        pytest.param(
            [a_class(), a_claim("c"), a_volume("v", "n1", size="1Gi")],
            "3 node(s) didn't find available persistent volumes to bind",
            id="volume-too-small",
        ),
        pytest.param(
            [a_class(), a_claim("c", access_modes=("ReadWriteMany",)), a_volume("v", "n1")],
            "3 node(s) didn't find available persistent volumes to bind",
            id="another-access-mode",
        ),
        pytest.param(
            [
                a_class(),
                a_claim("c"),
                a_volume("v", "n1", claim_ref=event.ObjectReference(namespace="default", name="other")),
            ],
            "3 node(s) didn't find available persistent volumes to bind",
            id="volume-of-another-claim",
        ),
    ],
)
def test_why_a_pod_fits_nowhere(objects: list[Any], want: str) -> None:
    assert why(a_world(*objects), using("c")) == f"0/3 nodes are available: {want}."


def test_a_pod_goes_to_its_volume() -> None:
    world = a_world(a_claim("c", volume_name="v", annotations=BOUND), a_volume("v", "n2"))
    decided = world.decide(using("c"))
    assert isinstance(decided, Placed)
    assert (decided.node, decided.assignment.volumes) == ("n2", ())


def test_claims_get_the_smallest_volumes_of_a_node_that_has_enough() -> None:
    world = a_world(
        a_class(),
        a_claim("small", size="2Gi"),
        a_claim("large", size="8Gi"),
        a_volume("v1", "n1", size="10Gi"),
        a_volume("v2", "n2", size="10Gi"),
        a_volume("v3", "n2", size="3Gi"),
        a_volume("v4", "n2", size="100Gi"),
    )
    decided = world.decide(using("large", "small"))
    assert isinstance(decided, Placed)
    assert (decided.node, decided.assignment.volumes) == ("n2", (("v3", "small"), ("v2", "large")))


def test_a_volume_is_promised_to_one_claim_only() -> None:
    world = a_world(a_class(), a_claim("a"), a_claim("b"), a_volume("v", "n1"))
    first = world.decide(using("a"))
    assert isinstance(first, Placed)
    world.snapshot.bind(first.assignment)
    assert why(world, using("b")).endswith("3 node(s) didn't find available persistent volumes to bind.")
    assert isinstance(world.decide(using("a")), Placed)
    world.snapshot.unbind(first.assignment)
    assert isinstance(world.decide(using("b")), Placed)


def test_volumes_are_provided_where_a_class_allows_it() -> None:
    requirement = storageclass.TopologySelectorLabelRequirement(key=HOST, values=("n3",))
    here = storageclass.TopologySelectorTerm(match_label_expressions=(requirement,))
    world = a_world(a_class("local", "example.com/disks", allowed_topologies=(here,)), a_claim("c"))
    decided = world.decide(using("c"))
    assert isinstance(decided, Placed)
    assert decided.node == "n3"


def test_a_node_that_was_chosen_before_stays() -> None:
    chosen = {"volume.kubernetes.io/selected-node": "n2"}
    world = a_world(a_class("local", "example.com/disks"), a_claim("c", annotations=chosen))
    decided = world.decide(using("c"))
    assert isinstance(decided, Placed)
    assert decided.node == "n2"
