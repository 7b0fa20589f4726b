"""Endpoints follow services and pods, and go with their service."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import pod, service
from drachma.controllers.endpoints import EndpointsController
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
    async with worlds.world(EndpointsController) as world:
        made = await world.client.create_document(service.Service, SERVICE)
        await world.settle()
        first = await world.client.get_document(ENDPOINTS, "web", namespace="default")
        assert first["metadata"]["labels"] == {
            "tier": "front",
            "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        }
        assert first["metadata"]["annotations"] == {TRIGGER: made["metadata"]["creationTimestamp"]}
        assert not first.get("subsets")

        await world.client.create_document(pod.Pod, POD)
        known = await world.client.get(pod.Pod, "a", namespace="default")
        since = "2026-03-01T00:00:00Z"
        status = {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        }
        await world.patch_status(known, status)
        await world.settle()
        second = await world.client.get_document(ENDPOINTS, "web", namespace="default")
        assert [each["ip"] for each in second["subsets"][0]["addresses"]] == ["10.0.0.1"]
        assert second["metadata"]["annotations"] == {TRIGGER: since}

        await world.client.delete(service.Service, "web", namespace="default")
        await world.settle()
        with pytest.raises(errors.ObjectNotFoundError):
            await world.client.get_document(ENDPOINTS, "web", namespace="default")
