"""Kinds that charts and tutorials use: made with their defaults, shown in tables, refused in upstream's words."""

import copy
from typing import Any

import pytest

from drachma.server.kinds import builtin
from tests import certificaterequests
from tests.unit.server.client import Client

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
POD: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}]},
}
SELECTOR = {"matchLabels": {"app": "a"}}
JOB_POD = {"spec": {**POD["spec"], "restartPolicy": "Never"}}
REQUEST = certificaterequests.encoded()
PATHS = {
    "CertificateSigningRequest": "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "PodTemplate": "/api/v1/namespaces/default/podtemplates",
    "ResourcePoolStatusRequest": "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
    "Service": "/api/v1/namespaces/default/services",
    "ControllerRevision": "/apis/apps/v1/namespaces/default/controllerrevisions",
    "CronJob": "/apis/batch/v1/namespaces/default/cronjobs",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
    "DaemonSet": "/apis/apps/v1/namespaces/default/daemonsets",
    "Endpoints": "/api/v1/namespaces/default/endpoints",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    "IngressClass": "/apis/networking.k8s.io/v1/ingressclasses",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "ReplicationController": "/api/v1/namespaces/default/replicationcontrollers",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
}
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
GOOD: dict[str, dict[str, Any]] = {
    "CertificateSigningRequest": {
        "spec": {"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"]}
    },
    "PodTemplate": {"template": POD},
    "ResourcePoolStatusRequest": {"spec": {"driver": "gpu.example.com"}},
    "Service": {"spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}},
    "ControllerRevision": {"data": {"a": 1}, "revision": 2},
    "CronJob": {"spec": {"schedule": "*/5 * * * MON-FRI", "jobTemplate": {"spec": {"template": JOB_POD}}}},
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n"}]}},
    "CSIStorageCapacity": {"storageClassName": "fast", "capacity": "1Ti"},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": POD}},
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "FlowSchema": {
        "spec": {
            "priorityLevelConfiguration": {"name": "system"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "ann"}}],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
                }
            ],
        }
    },
    "HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n"}}},
    "PriorityLevelConfiguration": {
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"handSize": 2}}}}
    },
    "ReplicationController": {"spec": {"template": POD}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    "NetworkPolicy": {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
    "PersistentVolume": {
        "spec": {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    },
    "PersistentVolumeClaim": {"spec": CLAIM_SPEC},
    "RuntimeClass": {"handler": "kata"},
    "StatefulSet": {
        "spec": {
            "selector": SELECTOR,
            "serviceName": "a",
            "template": POD,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}],
        }
    },
    "StorageClass": {"provisioner": "csi.example.com"},
    "VolumeAttachment": {
        "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
}


def made(kind: str, **content: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "o"}, **copy.deepcopy(GOOD[kind]), **content}


def at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


@pytest.mark.parametrize(
    ("kind", "path", "want"),
    [
        pytest.param("CronJob", "spec.concurrencyPolicy", "Allow", id="cron-jobs-run-side-by-side"),
        pytest.param("CronJob", "spec.successfulJobsHistoryLimit", 3, id="cron-jobs-keep-some-jobs"),
        pytest.param("CronJob", "spec.jobTemplate.spec.template.spec.dnsPolicy", "ClusterFirst", id="cron-job-pods"),
        pytest.param("CSIDriver", "spec.attachRequired", True, id="drivers-attach"),
        pytest.param("CSIDriver", "spec.preventPodSchedulingIfMissing", False, id="drivers-hold-up-nobody"),
        pytest.param(
            "DaemonSet",
            "metadata.annotations",
            {"deprecated.daemonset.template.generation": "1"},
            id="daemon-sets-count-templates",
        ),
        pytest.param("CSIDriver", "spec.volumeLifecycleModes", ["Persistent"], id="drivers-last"),
        pytest.param("CSINode", "spec.drivers.0.topologyKeys", None, id="a-list-that-is-written-even-if-empty"),
        pytest.param("DaemonSet", "spec.updateStrategy.rollingUpdate.maxUnavailable", 1, id="daemon-sets-roll"),
        pytest.param("DaemonSet", "spec.revisionHistoryLimit", 10, id="daemon-sets-remember"),
        pytest.param("DaemonSet", "status.numberMisscheduled", 0, id="daemon-sets-begin-with-nothing"),
        pytest.param("DaemonSet", "metadata.generation", 1, id="daemon-sets-count-generations"),
        pytest.param("Endpoints", "subsets.0.ports.0.protocol", "TCP", id="protocol-of-endpoints"),
        pytest.param("FlowSchema", "spec.matchingPrecedence", 1000, id="flow-schemas-come-in-the-middle"),
        pytest.param("HorizontalPodAutoscaler", "spec.minReplicas", 1, id="autoscalers-leave-one"),
        pytest.param(
            "HorizontalPodAutoscaler", "spec.metrics.0.resource.target.averageUtilization", 80, id="autoscalers-measure"
        ),
        pytest.param("HorizontalPodAutoscaler", "status.currentMetrics", None, id="autoscalers-begin-without-metrics"),
        pytest.param("IngressClass", "spec.parameters.scope", "Cluster", id="parameters-of-the-cluster"),
        pytest.param(
            "PriorityLevelConfiguration",
            "spec.limited.limitResponse.queuing",
            {"handSize": 2, "queues": 64, "queueLengthLimit": 50},
            id="levels-queue",
        ),
        pytest.param("ReplicationController", "spec.selector", {"app": "a"}, id="controllers-take-labels-of-pods"),
        pytest.param("ReplicationController", "metadata.labels", {"app": "a"}, id="and-have-them-themselves"),
        pytest.param("EndpointSlice", "ports.0", {"name": "", "port": 80, "protocol": "TCP"}, id="ports"),
        pytest.param("NetworkPolicy", "spec.policyTypes", ["Ingress", "Egress"], id="both-directions"),
        pytest.param("NetworkPolicy", "spec.egress.0.ports.0.protocol", "TCP", id="protocol-of-a-policy"),
        pytest.param("PersistentVolume", "spec.persistentVolumeReclaimPolicy", "Retain", id="volumes-are-kept"),
        pytest.param("PersistentVolume", "spec.hostPath.type", "", id="host-path"),
        pytest.param("PersistentVolumeClaim", "status.phase", "Pending", id="claims-wait"),
        pytest.param("PersistentVolumeClaim", "spec.volumeMode", "Filesystem", id="claims-want-files"),
        pytest.param("StatefulSet", "spec.podManagementPolicy", "OrderedReady", id="one-by-one"),
        pytest.param("StatefulSet", "spec.updateStrategy.rollingUpdate.partition", 0, id="stateful-sets-roll"),
        pytest.param("StatefulSet", "spec.volumeClaimTemplates.0.kind", "PersistentVolumeClaim", id="templates"),
        pytest.param("StatefulSet", "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain", id="retain"),
        pytest.param("StorageClass", "volumeBindingMode", "Immediate", id="classes-bind-at-once"),
        pytest.param("StorageClass", "reclaimPolicy", "Delete", id="classes-delete"),
        pytest.param("VolumeAttachment", "status.attached", False, id="attachments-begin-without"),
        pytest.param("CertificateSigningRequest", "spec.username", "kubernetes-admin", id="who-asks-for-a-certificate"),
        pytest.param("PodTemplate", "template.spec.restartPolicy", "Always", id="templates-restart"),
        pytest.param("Service", "spec.ports.0", {"port": 80, "protocol": "TCP", "targetPort": 80}, id="service-ports"),
        pytest.param("Service", "spec.type", "ClusterIP", id="services-are-inside"),
        pytest.param("ResourcePoolStatusRequest", "spec.limit", 100, id="so-many-pools"),
        pytest.param("Service", "spec.ipFamilies", ["IPv4"], id="services-have-a-family"),
        pytest.param("Service", "status", {"loadBalancer": {}}, id="services-begin-without-a-balancer"),
    ],
)
async def test_defaults(server: Client, kind: str, path: str, want: Any) -> None:
    answer = await server.call("POST", PATHS[kind], made(kind))
    assert answer.code == 201, answer.body
    assert at(answer.body, path) == want


@pytest.mark.parametrize("kind", GOOD)
async def test_objects_are_made_shown_changed_and_deleted(server: Client, kind: str) -> None:
    assert (await server.call("POST", PATHS[kind], made(kind))).code == 201
    table = (await server.call("GET", PATHS[kind], headers=TABLE)).body
    assert "o" in [row["cells"][0] for row in table["rows"]]
    assert {len(row["cells"]) for row in table["rows"]} == {len(table["columnDefinitions"])}
    patch = {"metadata": {"labels": {"a": "b"}}}
    changed = await server.call("PATCH", f"{PATHS[kind]}/o", patch, content_type="application/merge-patch+json")
    assert (changed.code, changed.body["metadata"]["labels"]["a"]) == (200, "b")
    applied = {"apiVersion": changed.body["apiVersion"], **made(kind)}
    apply = await server.call(
        "PATCH", f"{PATHS[kind]}/o?fieldManager=m&force=true", applied, content_type="application/apply-patch+yaml"
    )
    assert apply.code == 200, apply.body
    assert (await server.call("DELETE", f"{PATHS[kind]}/o")).code == 200


@pytest.mark.parametrize(
    ("kind", "content", "field", "words"),
    [
        pytest.param(
            "CronJob", {"schedule": "61 * * * *"}, "spec.schedule", "end of range (61) above maximum (59)", id="cron"
        ),
        pytest.param("CronJob", {"schedule": "* * *"}, "spec.schedule", "expected exactly 5 fields, found 3", id="few"),
        pytest.param(
            "CronJob", {"timeZone": ""}, "spec.timeZone", "timeZone must be nil or non-empty string", id="no-zone"
        ),
        pytest.param(
            "CronJob", {"timeZone": "LOCAL"}, "spec.timeZone", "must be an explicit time zone as defined", id="local"
        ),
        pytest.param(
            "CronJob",
            {"timeZone": "../../etc/passwd"},
            "spec.timeZone",
            'Invalid value: "../../etc/passwd": unknown time zone ../../etc/passwd',
            id="zone-outside",
        ),
        pytest.param(
            "CronJob", {"timeZone": "/etc/passwd"}, "spec.timeZone", "unknown time zone /etc/passwd", id="file"
        ),
        pytest.param(
            "CronJob", {"timeZone": "Middle/Earth"}, "spec.timeZone", "unknown time zone Middle/Earth", id="zone"
        ),
        pytest.param("CronJob", {"timeZone": "zone.tab"}, "spec.timeZone", "unknown time zone zone.tab", id="table"),
        pytest.param("CronJob", {"concurrencyPolicy": "x"}, "spec.concurrencyPolicy", "Unsupported value", id="policy"),
        pytest.param("StatefulSet", {"selector": None}, "spec.selector", "Required value", id="no-selector"),
        pytest.param("DaemonSet", {"selector": None}, "spec.template.metadata.labels", "does not match", id="nobodys"),
        pytest.param(
            "DaemonSet",
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            "cannot be 0 when maxSurge is 0",
            id="nothing-rolls",
        ),
        pytest.param(
            "DaemonSet",
            {"selector": {"matchLabels": {"b": "c"}}},
            "spec.template.metadata.labels",
            "`selector` does not match template `labels`",
            id="selector-of-others",
        ),
        pytest.param(
            "FlowSchema",
            {"matchingPrecedence": 1},
            "spec.matchingPrecedence",
            "only the schema named 'exempt'",
            id="first",
        ),
        pytest.param("HorizontalPodAutoscaler", {"maxReplicas": 0}, "spec.maxReplicas", "Required", id="no-most"),
        pytest.param(
            "HorizontalPodAutoscaler", {"minReplicas": 0}, "spec.metrics", "at least one Object", id="to-zero"
        ),
        pytest.param(
            "Ingress",
            {"defaultBackend": None},
            "spec",
            "either `defaultBackend` or `rules` must be specified",
            id="nowhere",
        ),
        pytest.param(
            "Ingress", {"rules": [{"host": "*"}]}, "spec.rules[0].host", "must start with '*.'", id="any-host"
        ),
        pytest.param("IngressClass", {"controller": "c"}, "spec.controller", "domain-prefixed path", id="controller"),
        pytest.param("PriorityLevelConfiguration", {"limited": None}, "spec.limited", "Required", id="no-limits"),
        pytest.param(
            "ReplicationController", {"selector": {"a": "b"}}, "spec.template.metadata.labels", "not", id="labels"
        ),
        pytest.param("NetworkPolicy", {"ingress": [{"from": [{}]}]}, "spec.ingress[0].from[0]", "a peer", id="peer"),
        pytest.param("PersistentVolume", {"hostPath": None}, "spec", "must specify a volume type", id="no-source"),
        pytest.param("PersistentVolumeClaim", {"accessModes": []}, "spec.accessModes", "at least 1", id="mode"),
        pytest.param(
            "StatefulSet",
            {"podManagementPolicy": "x"},
            "spec.podManagementPolicy",
            "must be",
            id="order",
        ),
        pytest.param(
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
            "spec.volumeClaimTemplates[0].spec.resources[storage]",
            "Required value",
            id="volumes-without-size",
        ),
        pytest.param(
            "NetworkPolicy",
            {"ingress": [{"ports": [{"protocol": ""}]}]},
            "spec.ingress[0].ports[0].protocol",
            'Unsupported value: "": supported values: "TCP", "UDP", "SCTP"',
            id="no-protocol",
        ),
        pytest.param("CSINode", {"drivers": [{"name": "a", "nodeID": ""}]}, "spec.drivers[0].nodeID", "R", id="node"),
        pytest.param("Service", {"ports": []}, "spec.ports", "Required value", id="no-ports"),
        pytest.param("Service", {"type": "x"}, "spec.type", "Unsupported value", id="no-such-type"),
        pytest.param("VolumeAttachment", {"source": {}}, "spec.source", "must specify exactly one of", id="source"),
    ],
)
async def test_refused(server: Client, kind: str, content: dict[str, Any], field: str, words: str) -> None:
    given = made(kind)
    given["spec"] = {**given["spec"], **content}
    answer = await server.call("POST", PATHS[kind], given)
    assert answer.code == 422
    messages = {cause["field"]: cause["message"] for cause in answer.body["details"]["causes"]}
    assert words in messages[field]


@pytest.mark.parametrize(
    ("kind", "patch", "field"),
    [
        pytest.param("RuntimeClass", {"handler": "other"}, "handler", id="handler"),
        pytest.param("ResourcePoolStatusRequest", {"spec": {"limit": 7}}, "spec", id="question"),
        pytest.param("StorageClass", {"provisioner": "other"}, "provisioner", id="provisioner"),
        pytest.param("StatefulSet", {"spec": {"serviceName": "b"}}, "spec", id="service-name"),
        pytest.param("ControllerRevision", {"data": {"a": 2}}, "data", id="revision"),
        pytest.param("EndpointSlice", {"addressType": "FQDN"}, "addressType", id="address-type"),
    ],
)
async def test_what_is_decided_once(server: Client, kind: str, patch: dict[str, Any], field: str) -> None:
    await server.call("POST", PATHS[kind], made(kind))
    answer = await server.call("PATCH", f"{PATHS[kind]}/o", patch, content_type="application/merge-patch+json")
    assert answer.code == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("kind", "content", "want"),
    [
        pytest.param(
            "EndpointSlice",
            {"endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "z"}, {"name": "z"}]}}]},
            'endpoints[0].hints.forZones[1].name: Duplicate value: "z"',
            id="a-zone-twice",
        ),
        pytest.param(
            "StorageClass",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": ["a", "a"]}]}]},
            'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
            id="a-place-twice",
        ),
        pytest.param("RuntimeClass", {"handler": ""}, "handler: Required value", id="no-handler"),
    ],
)
async def test_refused_outside_of_the_spec(server: Client, kind: str, content: dict[str, Any], want: str) -> None:
    answer = await server.call("POST", PATHS[kind], made(kind, **content))
    assert (answer.code, answer.body["message"].partition(" is invalid: ")[2]) == (422, want)


async def test_templates_of_daemon_sets_are_counted(server: Client) -> None:
    await server.call("POST", PATHS["DaemonSet"], made("DaemonSet"))
    for patch, want in (
        ({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "9"}}}, "1"),
        ({"spec": {"minReadySeconds": 3}}, "1"),
        ({"spec": {"template": {"spec": {"hostNetwork": True}}}}, "2"),
    ):
        path = f"{PATHS['DaemonSet']}/o"
        changed = await server.call("PATCH", path, patch, content_type="application/merge-patch+json")
        assert changed.body["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": want}


def test_every_kind_here_is_served() -> None:
    assert set(GOOD) <= {kind.kind for kind in builtin.KINDS}


async def test_every_service_has_an_address_of_its_own(server: Client) -> None:
    addresses = []
    for number in range(30):
        given = {**made("Service"), "metadata": {"name": f"s{number}"}}
        addresses.append((await server.call("POST", PATHS["Service"], given)).body["spec"]["clusterIP"])
    assert len(set(addresses)) == 30
    assert all(address.startswith("10.") for address in addresses)


async def test_services_are_selected_by_address_and_type(server: Client) -> None:
    headless = {**made("Service"), "metadata": {"name": "headless"}}
    headless["spec"] = {**headless["spec"], "clusterIP": "None"}
    await server.call("POST", PATHS["Service"], headless)
    await server.call("POST", PATHS["Service"], made("Service"))
    for selector, names in (("spec.clusterIP!=None", ["o"]), ("spec.type=ClusterIP", ["headless", "o"])):
        listed = await server.call("GET", f"{PATHS['Service']}?fieldSelector={selector}")
        assert [each["metadata"]["name"] for each in listed.body["items"] if "selector" in each["spec"]] == names
    refusal = await server.call("GET", f"{PATHS['Service']}?fieldSelector=spec.ports=1")
    assert (refusal.code, refusal.body["message"]) == (400, "field label not supported: spec.ports")


async def test_a_service_keeps_its_address(server: Client) -> None:
    stored_object = (await server.call("POST", PATHS["Service"], made("Service"))).body
    replaced = await server.call("PUT", f"{PATHS['Service']}/o", made("Service"))
    assert replaced.body["spec"]["clusterIP"] == stored_object["spec"]["clusterIP"]
    patch = {"spec": {"clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]}}
    moved = await server.call("PATCH", f"{PATHS['Service']}/o", patch, content_type="application/merge-patch+json")
    assert moved.code == 422
    assert "may not change once set" in moved.body["message"]


async def test_a_request_is_approved_and_stays_so(server: Client) -> None:
    await server.call("POST", PATHS["CertificateSigningRequest"], made("CertificateSigningRequest"))
    path = f"{PATHS['CertificateSigningRequest']}/o/approval"
    patch = {"status": {"certificate": "eA==", "conditions": [{"type": "Approved", "status": "True", "reason": "ok"}]}}
    approved = await server.call("PATCH", path, patch, content_type="application/merge-patch+json")
    assert approved.code == 200, approved.body
    assert "certificate" not in approved.body["status"]
    back = await server.call("PATCH", path, {"status": {"conditions": []}}, content_type="application/merge-patch+json")
    assert back.code == 422
