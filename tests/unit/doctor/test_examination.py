"""Clusters with one planted fault each: the doctor finds it and nothing else; a healthy cluster has no findings."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from drachma import doctor
from drachma.api import codec, resourceclaim
from drachma.client import patches
from drachma.doctor import visit
from drachma.doctor.cluster import EndpointSlice, WebhookConfiguration
from tests.unit.controllers import worlds
from tests.unit.doctor import faults

Document = dict[str, Any]


def _cluster(documents: list[Document], **facts: Any) -> doctor.Cluster:
    """Return a healthy cluster, with objects replaced by those of the same kind and name."""
    merged = {(each["kind"], each["metadata"]["name"]): each for each in [*faults.HEALTHY, *documents]}
    cluster = doctor.Cluster.of([codec.decode(each) for each in merged.values()], now=faults.NOW)
    return msgspec.structs.replace(cluster, **facts)


def _shown(findings: list[doctor.Finding]) -> list[str]:
    return [f"{each.severity} {each.check}: {each.subject}" for each in findings]


def test_a_healthy_cluster_has_no_findings() -> None:
    users = [faults.pod_document(resourceClaims=[{"name": "g", "resourceClaimName": "c"}]), faults.USED]
    assert doctor.examine(_cluster(users)) == []


@pytest.mark.parametrize(("documents", "want"), faults.FAULTS)
def test_one_fault(documents: list[Document], want: str) -> None:
    findings = doctor.examine(_cluster(documents))
    assert _shown(findings) == [want]
    assert findings[0].repair is not None or findings[0].advice


WEBHOOK = msgspec.convert(
    {
        "metadata": {"name": "queues"},
        "webhooks": [
            {
                "name": "w.example.com",
                "failurePolicy": "Fail",
                "clientConfig": {"service": {"namespace": "kueue-system", "name": "webhooks"}},
            }
        ],
    },
    WebhookConfiguration,
)
ENDPOINTS = msgspec.convert(
    {
        "metadata": {
            "name": "e",
            "namespace": "kueue-system",
            "labels": {"kubernetes.io/service-name": "webhooks"},
        },
        "endpoints": [{"conditions": {"ready": True}}],
    },
    EndpointSlice,
)


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        pytest.param({"webhooks": (WEBHOOK,), "endpoints": (ENDPOINTS,)}, [], id="a-webhook-that-answers"),
        pytest.param(
            {"webhooks": (WEBHOOK,), "endpoints": ()},
            ["error webhook-without-endpoints: webhook w.example.com of queues"],
            id="a-webhook-that-was-left-behind",
        ),
        pytest.param(
            {"unserved": ("resourceclaims.resource.k8s.io",)},
            ["critical kind-not-served: resource resourceclaims.resource.k8s.io"],
            id="the-api-is-off",
        ),
        pytest.param(
            {"unserved": ("devicetaintrules.resource.k8s.io",)},
            ["info kind-not-served: resource devicetaintrules.resource.k8s.io"],
            id="a-feature-is-off",
        ),
        pytest.param({"api_version": "v1beta1"}, ["info old-api-version: resource.k8s.io"], id="an-old-api-version"),
        pytest.param(
            {"server_version": "v1.36.2", "kubelet_versions": {"n1": "v1.37.0", "n2": "v1.32.4", "n3": "v1.35.0"}},
            ["warning version-skew: Node n1", "warning version-skew: Node n2"],
            id="kubelets-that-are-too-new-and-too-old",
        ),
    ],
)
def test_facts_about_the_api_server(facts: dict[str, Any], want: list[str]) -> None:
    assert _shown(doctor.examine(_cluster([], **facts))) == want


def test_all_faults_in_one_cluster() -> None:
    documents, want = faults.combined()
    cluster = doctor.Cluster.of([codec.decode(each) for each in documents], now=faults.NOW)
    facts: dict[str, Any] = {
        "webhooks": (WEBHOOK,),
        "endpoints": (),
        "unserved": ("devicetaintrules.resource.k8s.io",),
        "server_version": "v1.36.2",
        "kubelet_versions": {"n1-0": "v1.37.0"},
    }
    want += [
        "error webhook-without-endpoints: webhook w.example.com of queues",
        "info kind-not-served: resource devicetaintrules.resource.k8s.io",
        "warning version-skew: Node n1-0",
    ]
    assert len(want) == 26
    assert sorted(_shown(doctor.examine(msgspec.structs.replace(cluster, **facts)))) == sorted(want)


_REPAIRED = frozenset(
    {"slice-stale", "slice-orphaned", "reservation-without-pod", "claim-stuck-deleting", "claim-orphaned"}
)
"""Checks that propose a repair, which the next test carries out."""


def test_no_other_check_proposes_a_repair() -> None:
    findings = [finding for documents, _ in faults.planted() for finding in doctor.examine(_cluster(documents))]
    assert {each.check for each in findings if each.repair is not None} == _REPAIRED


async def test_repairs_are_carried_out_and_end_the_findings() -> None:
    """Every repair is a request that the real server takes."""
    stuck = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
    documents = [
        faults.CLASS,
        faults.node_document(),
        faults.slice_document(pool={"generation": 2}),
        faults.slice_document("old"),
        faults.slice_document("lost", node_name="n9"),
        faults.claim_document("reserved"),
        faults.claim_document("stuck", metadata=stuck),
        faults.claim_document("orphan", metadata={"ownerReferences": [faults.OWNER]}),
    ]
    async with worlds.world() as cluster:
        for document in documents:
            document["metadata"].pop("uid")
            document.pop("status", None)
            await cluster.client.create_document(type(codec.decode(document)), document)
        status = {"allocation": faults.allocation(), "reservedFor": [faults.reservation("gone")]}
        await cluster.client.patch(
            resourceclaim.ResourceClaim,
            "reserved",
            namespace="default",
            subresource="status",
            patch=patches.merge({"status": status}),
        )
        await cluster.client.delete(resourceclaim.ResourceClaim, "stuck", namespace="default")
        later = cluster.clock.utc() + dt.timedelta(hours=1)
        findings = doctor.examine(await visit.read(cluster.client, now=later))
        repairs = [each.repair for each in findings if each.repair is not None]
        assert {each.check for each in findings if each.repair is not None} == _REPAIRED
        for repair in repairs:
            await visit.carry_out(cluster.client, repair)
        after = doctor.examine(await visit.read(cluster.client, now=later))
        assert [each.check for each in after if each.repair is not None] == []


def test_devices_with_capacity() -> None:
    """Quantities are part of what tells devices apart."""
    published = faults.slice_document(devices=[{"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}}])
    assert doctor.examine(_cluster([published])) == []
