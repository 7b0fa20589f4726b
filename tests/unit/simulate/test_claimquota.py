"""Pending pods whose claims a resource quota keeps from being created."""

from typing import Any

import pytest

from drachma.api import codec, gates, meta, pod, resourcequota
from drachma.scheduler import Settings
from drachma.simulate import ClusterState, Simulation, podexplanation

_GATES = gates.ALL.switched({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})
_CLAIM = {"name": "g", "resourceClaimTemplateName": "one-gpu"}
_COUNT = "count/resourceclaims.resource.k8s.io"
_DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> meta.Object:
    metadata = {"name": name, "uid": name, **({"namespace": namespace} if namespace else {})}
    return codec.decode({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def _quota(namespace: str = "default", **limits: tuple[str, str]) -> resourcequota.ResourceQuota:
    names = {"claims": _COUNT, "devices": _DEVICES}
    status = {
        "hard": {names[name]: hard for name, (hard, _) in limits.items()},
        "used": {names[name]: used for name, (_, used) in limits.items()},
    }
    quota = _object("v1", "ResourceQuota", "team", namespace, spec={"hard": status["hard"]}, status=status)
    assert isinstance(quota, resourcequota.ResourceQuota)
    return quota


def _cluster(*, has_claim: bool = False) -> Simulation:
    spec = {"devices": {"requests": [{"name": "r", "exactly": _EXACTLY}]}}
    device_slice = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    group_status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "made"}]} if has_claim else {}
    group_spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [_CLAIM]}
    objects = [
        _object("v1", "Node", "n1", status={"allocatable": {"cpu": "8", "pods": "9"}}),
        _object("resource.k8s.io/v1", "DeviceClass", "gpu", spec={}),
        _object("resource.k8s.io/v1", "ResourceSlice", "s", spec=device_slice),
        _object("resource.k8s.io/v1", "ResourceClaimTemplate", "one-gpu", "default", spec={"spec": spec}),
        _object("scheduling.k8s.io/v1beta1", "PodGroup", "training", "default", spec=group_spec, status=group_status),
        _pod("member", group="training"),
        _pod("single"),
    ]
    if has_claim:
        owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "training", "uid": "training"}
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "made",
                "namespace": "default",
                "uid": "made",
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": spec,
        }
        objects.append(codec.decode(claim))
    return Simulation(ClusterState.of(objects), settings=Settings(gates=_GATES))


_EXACTLY = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


def _pod(name: str, *, group: str = "") -> pod.Pod:
    spec: dict[str, Any] = {
        "containers": [{"name": "c"}],
        "resourceClaims": [_CLAIM],
        "schedulerName": "default-scheduler",
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    made = _object("v1", "Pod", name, "default", spec=spec)
    assert isinstance(made, pod.Pod)
    return made


def _explain(
    name: str, quota: resourcequota.ResourceQuota, *, has_claim: bool = False
) -> podexplanation.PodExplanation:
    cluster = _cluster(has_claim=has_claim)
    explained = cluster.find("default", name)
    assert explained is not None
    return podexplanation.explain(cluster, explained, quotas=[quota])


@pytest.mark.parametrize(
    ("name", "quota", "want"),
    [
        pytest.param(
            "member",
            _quota(claims=("1", "1")),
            "claim g of pod group default/training is not created: exceeded quota: team, "
            "requested: count/resourceclaims.resource.k8s.io=1, used: count/resourceclaims.resource.k8s.io=1, "
            "limited: count/resourceclaims.resource.k8s.io=1",
            id="claim-of-a-group",
        ),
        pytest.param(
            "single",
            _quota(devices=("2", "2")),
            "claim g of pod default/single is not created: exceeded quota: team, "
            "requested: gpu.deviceclass.resource.k8s.io/devices=1, used: gpu.deviceclass.resource.k8s.io/devices=2, "
            "limited: gpu.deviceclass.resource.k8s.io/devices=2",
            id="devices-of-a-pod",
        ),
    ],
)
def test_a_quota_refuses_the_claim(name: str, quota: resourcequota.ResourceQuota, want: str) -> None:
    explained = _explain(name, quota)
    assert (explained.node, explained.message) == ("", want)


@pytest.mark.parametrize(
    ("quota", "has_claim"),
    [
        pytest.param(_quota(claims=("2", "1")), False, id="enough-quota"),
        pytest.param(_quota("other", claims=("1", "1")), False, id="another-namespace"),
        pytest.param(_quota(claims=("1", "1")), True, id="the-claim-exists"),
    ],
)
def test_other_quotas_do_not_matter(quota: resourcequota.ResourceQuota, *, has_claim: bool) -> None:
    assert _explain("member", quota, has_claim=has_claim).node == "n1"
