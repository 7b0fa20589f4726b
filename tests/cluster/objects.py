"""Objects that tests create on a real API server, and what they read of them."""

from collections.abc import Iterable
from typing import Any

from tests import patience
from tests.scenarios import wire

Document = dict[str, Any]

DRIVER = "gpu.example.com"
CLASS = "gpu"
_PLURALS = {
    "APIService": "apiservices",
    "ClusterQueue": "clusterqueues",
    "ConfigMap": "configmaps",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Deployment": "deployments",
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
    "EndpointSlice": "endpointslices",
    "Job": "jobs",
    "LocalQueue": "localqueues",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "PodTemplate": "podtemplates",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceFlavor": "resourceflavors",
    "ResourceQuota": "resourcequotas",
    "ResourceSlice": "resourceslices",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def path(document: Document) -> str:
    """Return the path of the collection that an object belongs to."""
    version, namespace = document["apiVersion"], document["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{_PLURALS[document['kind']]}"


def create(admin: wire.Wire, *documents: Document) -> None:
    """Create objects, with the status of nodes and without the taint that new nodes get."""
    for each in documents:
        answer = admin.call("POST", path(each), each)
        assert answer.code in (200, 201), (each["kind"], answer.body)
        if each["kind"] == "Node":
            place = f"{path(each)}/{each['metadata']['name']}"
            merge(admin, place, {"spec": {"taints": None}})
            merge(admin, f"{place}/status", {"status": each["status"]})


def create_if_absent(admin: wire.Wire, *documents: Document) -> None:
    """Create objects that an earlier test may have left."""
    for each in documents:
        answer = admin.call("POST", path(each), each)
        assert answer.code in (200, 201, 409), (each["kind"], answer.body)


def replace(admin: wire.Wire, document: Document) -> None:
    """Create an object, or replace the one of its name as ``kubectl replace`` does."""
    place = f"{path(document)}/{document['metadata']['name']}"
    stored = admin.call("GET", place)
    if stored.code == 404:
        create(admin, document)
        return
    version = {"resourceVersion": stored.body["metadata"]["resourceVersion"]}
    answer = admin.call("PUT", place, {**document, "metadata": {**document["metadata"], **version}})
    assert answer.code == 200, answer.body


def merge(admin: wire.Wire, place: str, patch: Document) -> Document:
    """Send a merge patch, and return the object."""
    answer = admin.call("PATCH", place, patch, content_type="application/merge-patch+json")
    assert answer.code == 200, answer.body
    body: Document = answer.body
    return body


def _object(version: str, kind: str, name: str, *, namespace: str = "", **fields: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def node(name: str) -> Document:
    """Return a node that is ready, with room for 100 pods."""
    resources = {"cpu": "16", "memory": "64Gi", "pods": "100"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
    return _object("v1", "Node", name, status=status)


def device_class(name: str = CLASS) -> Document:
    """Return a class of all devices of the driver."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return _object("resource.k8s.io/v1", "DeviceClass", name, spec={"selectors": [selector]})


def resource_slice(node_name: str, count: int) -> Document:
    """Return the only slice of a node's pool."""
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(count)]
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": devices}
    return _object("resource.k8s.io/v1", "ResourceSlice", f"{node_name}-gpus", spec=spec)


def devices_spec(parameters: Document | None = None) -> Document:
    """Return the part of a claim that asks for one device, with parameters for its driver."""
    spec: Document = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}
    if parameters is not None:
        spec["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    return spec


def claim(name: str, parameters: Document | None = None) -> Document:
    """Return a claim of one device."""
    spec = {"devices": devices_spec(parameters)}
    return _object("resource.k8s.io/v1", "ResourceClaim", name, namespace="default", spec=spec)


def template(name: str) -> Document:
    """Return a template of claims of one device."""
    spec = {"spec": {"devices": devices_spec()}}
    return _object("resource.k8s.io/v1", "ResourceClaimTemplate", name, namespace="default", spec=spec)


def pod(name: str, *, claim_name: str = "", template_name: str = "", scheduler: str = "default-scheduler") -> Document:
    """Return a pod with at most one claim."""
    container: Document = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "100m"}}}
    spec: Document = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0}
    if claim_name or template_name:
        source = {"resourceClaimName": claim_name} if claim_name else {"resourceClaimTemplateName": template_name}
        spec["resourceClaims"] = [{"name": "gpu", **source}]
        container["resources"]["claims"] = [{"name": "gpu"}]
    return _object("v1", "Pod", name, namespace="default", spec=spec)


def wait_for_node(admin: wire.Wire, name: str) -> str:
    """Return the node of a pod, as soon as it has one."""
    return patience.until(
        lambda: str(admin.call("GET", f"{PODS}/{name}").body.get("spec", {}).get("nodeName") or ""),
        what=f"pod {name} has a node",
    )


def claims(admin: wire.Wire) -> list[Document]:
    """Return all claims."""
    items: list[Document] = admin.call("GET", "/apis/resource.k8s.io/v1/resourceclaims").body["items"]
    return items


def allocated_devices(documents: Iterable[Document]) -> list[str]:
    """Return the devices that claims hold, with repetitions, in order."""
    allocations = [each.get("status", {}).get("allocation") or {} for each in documents]
    results = [result for each in allocations for result in each.get("devices", {}).get("results", ())]
    return sorted(f"{each['driver']}/{each['pool']}/{each['device']}" for each in results)
