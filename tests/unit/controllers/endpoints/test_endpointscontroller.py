"""Endpoints follow services and pods, and go with their service."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import pod, service
from drachma.controllers.endpoints import endpoint_slice_controller, endpoints_controller, sliceplan
from drachma.controllers.endpoints.endpointscontroller import ENDPOINTS
from tests.unit.controllers import worlds

TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "labels": {"tier": "front"}},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def test_the_life_of_endpoints() -> None:
    async with worlds.world(endpoints_controller) as world:
        created_service = await world.client.create_document(service.Service, SERVICE)
        await world.settle()
        first = await world.client.get_document(ENDPOINTS, "web", namespace="default")
        assert first["metadata"]["labels"] == {
            "tier": "front",
            "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        }
        assert first["metadata"]["annotations"] == {TRIGGER: created_service["metadata"]["creationTimestamp"]}
        assert not first.get("subsets")

        await world.client.create_document(pod.Pod, POD)
        stored_pod = await world.client.get(pod.Pod, "a", namespace="default")
        since = "2026-03-01T00:00:00Z"
        status = {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        }
        await world.patch_status(stored_pod, status)
        await world.settle()
        second = await world.client.get_document(ENDPOINTS, "web", namespace="default")
        assert [each["ip"] for each in second["subsets"][0]["addresses"]] == ["10.0.0.1"]
        assert second["metadata"]["annotations"] == {TRIGGER: since}

        await world.client.delete(service.Service, "web", namespace="default")
        await world.settle()
        with pytest.raises(errors.ObjectNotFoundError):
            await world.client.get_document(ENDPOINTS, "web", namespace="default")


async def test_the_life_of_slices() -> None:
    async with worlds.world(endpoint_slice_controller) as world:
        await world.client.create_document(service.Service, SERVICE)
        await world.settle()
        (empty,) = (await world.client.list(sliceplan.SLICES)).items
        assert (empty.endpoints, empty.metadata.labels["tier"]) == ((), "front")

        await world.client.create_document(pod.Pod, POD)
        stored_pod = await world.client.get(pod.Pod, "a", namespace="default")
        await world.patch_status(stored_pod, {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]})
        await world.settle()
        (created_slice,) = (await world.client.list(sliceplan.SLICES)).items
        assert [each["addresses"] for each in created_slice.endpoints] == [["10.0.0.1"]]

        await world.patch_status(stored_pod, {"conditions": [{"type": "Ready", "status": "True"}]})
        await world.settle()
        (changed,) = (await world.client.list(sliceplan.SLICES)).items
        assert changed.metadata.uid == created_slice.metadata.uid
        assert [each["conditions"]["ready"] for each in changed.endpoints] == [True]

        await world.client.delete(pod.Pod, "a", namespace="default", grace_period_seconds=0)
        await world.settle()
        (last,) = (await world.client.list(sliceplan.SLICES)).items
        assert last.endpoints == ()


async def test_endpoints_of_other_clients_are_not_mirrored_and_slices_have_no_hints() -> None:
    async with worlds.world(endpoint_slice_controller) as world:
        own = {
            "metadata": {"name": "by-hand", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}],
        }
        await world.client.create_document(ENDPOINTS, own)
        unselective = {
            **SERVICE,
            "metadata": {"name": "by-hand", "namespace": "default"},
            "spec": {"ports": [{"port": 80}]},
        }
        await world.client.create_document(service.Service, unselective)
        zonal = {"service.kubernetes.io/topology-mode": "Auto"}
        document = {**SERVICE, "metadata": {**SERVICE["metadata"], "annotations": zonal}}
        await world.client.create_document(service.Service, document)
        await world.client.create_document(pod.Pod, POD)
        stored_pod = await world.client.get(pod.Pod, "a", namespace="default")
        addresses = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
        await world.patch_status(stored_pod, addresses)
        await world.settle()
        (published,) = (await world.client.list(sliceplan.SLICES)).items
        assert published.metadata.labels["kubernetes.io/service-name"] == "web"
        assert "hints" not in published.endpoints[0]
