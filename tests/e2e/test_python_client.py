"""The official Python client against a running server: typed calls, the dynamic client, and watches."""

import importlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios import processes

kubernetes = pytest.importorskip("kubernetes", reason="the official kubernetes client is not installed")


@pytest.fixture(scope="module")
def api(server: processes.Process) -> Iterator[Any]:
    client = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    yield client
    client.close()
    client.rest_client.pool_manager.clear()


def _pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"by": "python"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}]},
    }


def test_typed_calls(api: Any) -> None:
    core = kubernetes.client.CoreV1Api(api)
    made = core.create_namespaced_pod("default", _pod("typed"))
    assert made.spec.scheduler_name == "default-scheduler"
    listed = core.list_namespaced_pod("default", label_selector="by=python")
    assert [pod.metadata.name for pod in listed.items] == ["typed"]
    patched = core.patch_namespaced_pod("typed", "default", {"metadata": {"labels": {"x": "y"}}})
    assert patched.metadata.labels["x"] == "y"
    core.patch_namespaced_pod_status("typed", "default", {"status": {"phase": "Running"}})
    assert core.read_namespaced_pod("typed", "default").status.phase == "Running"
    binding = kubernetes.client.V1Binding(
        metadata=kubernetes.client.V1ObjectMeta(name="typed"),
        target=kubernetes.client.V1ObjectReference(kind="Node", name="n1"),
    )
    core.create_namespaced_pod_binding("typed", "default", binding, _preload_content=False)
    assert core.read_namespaced_pod("typed", "default").spec.node_name == "n1"
    core.delete_namespaced_pod("typed", "default", grace_period_seconds=0)
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.read_namespaced_pod("typed", "default")
    assert caught.value.status == 404


def test_pages(api: Any) -> None:
    core = kubernetes.client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"page-{number}", "labels": {"page": "x"}}})
    names, token = [], None
    while True:
        part = core.list_namespaced_config_map("default", label_selector="page=x", limit=2, _continue=token)
        names += [item.metadata.name for item in part.items]
        token = part.metadata._continue
        if not token:
            break
    assert names == [f"page-{number}" for number in range(5)]
    core.delete_collection_namespaced_config_map("default", label_selector="page=x")
    assert core.list_namespaced_config_map("default", label_selector="page=x").items == []


def test_a_conflict(api: Any) -> None:
    core = kubernetes.client.CoreV1Api(api)
    made = core.create_namespaced_config_map("default", {"metadata": {"name": "contested"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("contested", "default", {"data": {"a": "2"}})
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.replace_namespaced_config_map("contested", "default", made)
    assert (caught.value.status, "has been modified" in caught.value.body) == (409, True)


def test_dynamic_client(api: Any) -> None:
    dynamic: Any = importlib.import_module("kubernetes.dynamic")
    claims = dynamic.DynamicClient(api).resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "dynamic"},
        "spec": {"devices": {"requests": [request]}},
    }
    made = claims.create(body=body, namespace="default")
    assert made.spec.devices.requests[0].exactly.count == 1
    applied = claims.server_side_apply(
        body={**body, "metadata": {"name": "dynamic", "labels": {"a": "b"}}},
        namespace="default",
        name="dynamic",
        field_manager="tests",
        force_conflicts=True,
    )
    assert applied.metadata.labels.a == "b"
    claims.delete(name="dynamic", namespace="default")


def test_a_watch_sees_what_happens(api: Any) -> None:
    core = kubernetes.client.CoreV1Api(api)
    version = core.list_namespaced_config_map("default").metadata.resource_version
    watch = kubernetes.watch.Watch()
    seen: list[tuple[str, str]] = []

    def follow() -> None:
        for event in watch.stream(
            core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=60
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                watch.stop()

    follower = threading.Thread(target=follow)
    follower.start()
    core.create_namespaced_config_map("default", {"metadata": {"name": "watched"}})
    core.patch_namespaced_config_map("watched", "default", {"data": {"a": "b"}})
    core.delete_namespaced_config_map("watched", "default")
    follower.join(60)
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")]
