"""Templates, classes, slices and workloads for tests of what devices are charged with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drachma.api import codec, meta
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.kinds import decoding, workload

Document = Mapping[str, Any]


def template(name: str, *requests: Document, uid: str = "") -> meta.Object:
    """A claim template; requests without a form are of the default mode and count."""
    spec = {"devices": {"requests": [completed(each) for each in requests]}}
    metadata = {"name": name, "namespace": "default", **({"uid": uid} if uid else {})}
    return _object("ResourceClaimTemplate", metadata, {"spec": spec})


def claim(name: str, *requests: Document, uid: str = "claim") -> meta.Object:
    """A claim."""
    spec = {"devices": {"requests": [completed(each) for each in requests]}}
    return _object("ResourceClaim", {"name": name, "namespace": "default", "uid": uid}, spec)


def completed(request: Document) -> dict[str, Any]:
    """A request with the API server's defaults."""

    def whole(way: Document) -> dict[str, Any]:
        mode = {"allocationMode": "ExactCount", **way}
        return mode if mode["allocationMode"] == "All" else {"count": 1, **mode}

    exact_request = dict(request)
    if "exactly" in exact_request:
        exact_request["exactly"] = whole(exact_request["exactly"])
    if "firstAvailable" in exact_request:
        exact_request["firstAvailable"] = [whole(each) for each in exact_request["firstAvailable"]]
    return exact_request


def device_class(name: str, *, extended: str = "", model: str = "") -> meta.Object:
    """A class for all devices of one model, or for all devices."""
    spec: dict[str, Any] = {"extendedResourceName": extended} if extended else {}
    if model:
        expression = f'device.attributes["gpus.example.com"].model == "{model}"'
        spec["selectors"] = [{"cel": {"expression": expression}}]
    return _object("DeviceClass", {"name": name}, spec)


def device(name: str, model: str = "", **fields: Any) -> dict[str, Any]:
    """A device of a model."""
    attributes = {"attributes": {"model": {"string": model}}} if model else {}
    return {"name": name, **attributes, **fields}


def device_slice(node: str, devices: Sequence[Document], *, generation: int = 1) -> meta.Object:
    """A complete pool: that of a node, or for all nodes where none is named."""
    pool = node or "network"
    place = {"nodeName": node} if node else {"allNodes": True}
    spec = {
        "driver": "gpus.example.com",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": list(devices),
        **place,
    }
    return _object("ResourceSlice", {"name": pool}, spec)


def job(
    *templates: str,
    named: Iterable[str] = (),
    count: int = 1,
    init_containers: Sequence[Document] = (),
    containers: Sequence[Document] | None = None,
    name: str = "job",
    queue: str = "team",
) -> workload.Workload:
    """A workload of one pod set whose pods use templates, and claims by name."""
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    claims += [{"name": each, "resourceClaimName": each} for each in named]
    used = [{"name": each["name"]} for each in claims]
    spec = {
        "containers": containers if containers is not None else [{"name": "c", "resources": {"claims": used}}],
        "initContainers": list(init_containers),
        "resourceClaims": claims,
    }
    pod_set = {"name": "main", "count": count, "template": {"spec": spec}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return decoding.decode(
        {"metadata": metadata, "spec": {"queueName": queue, "podSets": [pod_set]}}, workload.Workload
    )


def objects(*of: meta.Object) -> DeviceObjects:
    """A cluster with nothing but these."""
    return DeviceObjects.of(of)


def _object(kind: str, metadata: Document, spec: Document) -> meta.Object:
    return codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
