"""Services, volume claims and other counted objects."""

from typing import Any

import pytest

from drachma.accounting.quota import evaluator, evaluators, objectcounts, volumeclaims
from drachma.api import meta
from drachma.api.persistentvolumeclaim import PersistentVolumeClaim
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.api.service import Service
from tests.unit.accounting.quota import worlds


@pytest.mark.parametrize(
    ("group", "plural", "want"),
    [
        pytest.param("", "configmaps", {"count/configmaps": "1", "configmaps": "1"}, id="with-a-name-of-its-own"),
        pytest.param("", "serviceaccounts", {"count/serviceaccounts": "1"}, id="core"),
        pytest.param("apps", "secrets", {"count/secrets.apps": "1"}, id="group"),
    ],
)
def test_any_kind_can_be_counted(group: str, plural: str, want: dict[str, str]) -> None:
    judge = evaluators.of(group, plural)
    assert judge is not None
    assert worlds.used(judge, meta.Object()) == want
    assert judge.counted([*want, "pods", "count/others"], worlds.NOTHING) == set(want)
    assert judge.concerns(evaluator.Change(meta.Object()))
    assert not judge.concerns(evaluator.Change(meta.Object(), meta.Object()))
    assert not judge.is_in_scope(meta.Object(), Requirement(scope_name="BestEffort", operator="Exists"))


def test_events_are_not_counted() -> None:
    assert evaluators.of("", "events") is None
    assert evaluators.of("events.k8s.io", "events") is None


@pytest.mark.parametrize(
    ("spec", "node_ports", "balancers"),
    [
        pytest.param({"ports": [{"port": 80}]}, 0, 0, id="within-the-cluster"),
        pytest.param({"type": "NodePort", "ports": [{"port": 80}, {"port": 81}]}, 2, 0, id="node-ports"),
        pytest.param({"type": "LoadBalancer", "ports": [{"port": 80}]}, 1, 1, id="load-balancer"),
        pytest.param(
            {
                "type": "LoadBalancer",
                "ports": [{"port": 80}, {"port": 81, "nodePort": 30000}],
                "allocateLoadBalancerNodePorts": False,
            },
            1,
            1,
            id="load-balancer-without-node-ports",
        ),
    ],
)
def test_services(spec: dict[str, Any], node_ports: int, balancers: int) -> None:
    usage = objectcounts.Services().usage(worlds.read({"spec": spec}, Service), worlds.NOTHING)
    numbers = {name: amount.as_int64() for name, amount in usage.items()}
    assert numbers == {
        "count/services": 1,
        "services": 1,
        "services.nodeports": node_ports,
        "services.loadbalancers": balancers,
    }


def volume(status: Any = None, metadata: Any = None, **spec: Any) -> PersistentVolumeClaim:
    made: PersistentVolumeClaim = worlds.read(
        {"metadata": metadata or {}, "spec": spec, "status": status or {}}, PersistentVolumeClaim
    )
    return made


GIB = {"requests": {"storage": "1Gi"}}
OLD_CLASS = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(volume(), {}, id="asks-for-nothing"),
        pytest.param(volume(resources=GIB), {"requests.storage": "1Gi"}, id="storage"),
        pytest.param(
            volume(resources=GIB, storageClassName="fast"),
            {
                "requests.storage": "1Gi",
                "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            },
            id="storage-class",
        ),
        pytest.param(
            volume(metadata=OLD_CLASS, storageClassName="fast"),
            {"old.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
            id="class-in-an-annotation",
        ),
        pytest.param(
            volume({"allocatedResources": {"storage": "2Gi"}}, resources=GIB),
            {"requests.storage": "2Gi"},
            id="expanded",
        ),
        pytest.param(volume(resources={"requests": {"storage": "1500m"}}), {"requests.storage": "2"}, id="whole-bytes"),
    ],
)
def test_volume_claims(subject: PersistentVolumeClaim, want: dict[str, str]) -> None:
    counts = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1"}
    assert worlds.used(volumeclaims.VolumeClaims(), subject) == {**counts, **want}


@pytest.mark.parametrize(
    ("subject", "operator", "want"),
    [
        pytest.param(volume(volumeAttributesClassName="gold"), "In", True, id="spec"),
        pytest.param(volume({"currentVolumeAttributesClassName": "gold"}), "In", True, id="current"),
        pytest.param(
            volume({"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}), "In", True, id="target"
        ),
        pytest.param(volume(volumeAttributesClassName="tin"), "In", False, id="another"),
        pytest.param(volume(), "NotIn", True, id="none"),
        pytest.param(volume(), "Exists", False, id="none-exists"),
        pytest.param(volume(), "DoesNotExist", True, id="none-is-wanted"),
        pytest.param(volume(), "Sometimes", False, id="no-such-operator"),
    ],
)
def test_volume_attributes_classes(subject: PersistentVolumeClaim, operator: str, want: bool) -> None:
    judge = volumeclaims.VolumeClaims()
    requirement = Requirement(scope_name="VolumeAttributesClass", operator=operator, values=("gold",))
    assert judge.is_in_scope(subject, requirement) is want


def test_a_status_counts_where_it_moves_a_volume_claim() -> None:
    judge, before = volumeclaims.VolumeClaims(), volume(resources=GIB)
    moved = volume({"allocatedResources": {"storage": "2Gi"}}, resources=GIB)
    assert judge.concerns(evaluator.Change(moved, before, "status"))
    assert not judge.concerns(evaluator.Change(before, before, "status"))
