"""CapacityBuffers: spare capacity that the autoscaler keeps for pods of a shape, devices included."""

from typing import Any

import pytest

from drachma.api import pod
from drachma.simulate.autoscaler import Settings, capacitybuffers
from drachma.simulate.autoscaler.capacitybuffers import BUFFERS
from tests.scenarios.test_autoscaler import World, gpu_pod, group, world

_DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: capacitybuffers.autoscaling.x-k8s.io}
spec:
  group: autoscaling.x-k8s.io
  names: {kind: CapacityBuffer, listKind: CapacityBufferList, plural: capacitybuffers, singular: capacitybuffer}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
_TEMPLATE = """
apiVersion: v1
kind: PodTemplate
metadata: {name: training}
template:
  metadata: {labels: {app: training}}
  spec:
    containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}]
    resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""
_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: elsewhere, containers: [{name: c, image: pause, resources: {requests: {cpu: "2"}}}]}
"""


async def _buffer(made: World, name: str = "spare", **spec: Any) -> None:
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await made.running.client.create_document(
        BUFFERS, {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", **document}
    )
    await made.running.settle()


async def _status(made: World, name: str = "spare") -> dict[str, Any]:
    document = await made.running.client.get_document(BUFFERS, name, namespace="default")
    status = dict(document.get("status") or {})
    status["conditions"] = {
        each["type"]: (each["status"], each["reason"], each["message"]) for each in status.get("conditions", ())
    }
    return status


async def _install(made: World) -> None:
    await made.running.apply(_DEFINITION, _TEMPLATE, _DEPLOYMENT)
    # The kinds of the server are read again after a while.
    await made.rounds(1, seconds=60)


async def test_a_buffer_of_devices_is_kept_and_used() -> None:
    async with world([group()], chosen=Settings(unneeded=60, cooldown=60)) as made:
        await _install(made)
        await _buffer(made, podTemplateRef={"name": "training"}, replicas=3)
        await made.rounds(2)
        assert await made.nodes() == ["gpu-new-1", "gpu-new-2"]
        assert await _status(made) == {
            "replicas": 3,
            "podTemplateRef": {"name": "training"},
            "podTemplateGeneration": 1,
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "conditions": {
                "ReadyForProvisioning": ("True", "AttributesSetSuccessfully", "ready"),
                "Provisioning": ("True", "FakePodsInjected", ""),
            },
        }
        assert await made.running.all_of(pod.Pod) == ()
        # Nodes with spare capacity stay, and a pod takes its place at once; the buffer is filled again.
        await made.rounds(30)
        assert await made.nodes() == ["gpu-new-1", "gpu-new-2"]
        await made.running.create(gpu_pod("a"), gpu_pod("b"))
        assert await made.running.node_of("a")
        await made.rounds(2)
        assert len(await made.nodes()) == 3


async def test_nodes_go_with_the_buffer() -> None:
    async with world([group()], chosen=Settings(unneeded=60, cooldown=60)) as made:
        await _install(made)
        await _buffer(made, podTemplateRef={"name": "training"}, replicas=2)
        await made.rounds(2)
        assert await made.nodes() == ["gpu-new-1"]
        await made.running.client.delete(BUFFERS, "spare", namespace="default")
        await made.rounds(30)
        assert await made.nodes() == []


_WEB = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}}
_TRAINING = {"podTemplateRef": {"name": "training"}}


async def test_buffers_of_a_workload_have_the_least_number_that_is_said() -> None:
    async with world([]) as made:
        await _install(made)
        await _buffer(made, "percentage", **_WEB, percentage=25)
        await _buffer(made, "least", **_WEB, percentage=50, replicas=3)
        await _buffer(made, "limits", **_WEB, limits={"cpu": "5"})
        await made.rounds(1)
        for name, want in (("percentage", 2), ("least", 3), ("limits", 2)):
            status = await _status(made, name)
            assert status["replicas"] == want
            problem = f"{want} of {want} pods find no room"
            assert status["conditions"]["Provisioning"] == ("False", "CapacityIsNotFound", problem)


_UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "no-reference": ({"replicas": 1}, "exactly one of podTemplateRef and scalableRef is required"),
    "no-number": (_TRAINING, "replicas, percentage and limits are not defined"),
    "no-such-resource": (
        {**_TRAINING, "limits": {"memory": "1Gi"}},
        "resources in configured limits not found in the pod template",
    ),
    "no-template": ({"podTemplateRef": {"name": "x"}, "replicas": 1}, 'podtemplates "x" not found'),
    "words-for-numbers": ({**_TRAINING, "replicas": "many"}, "spec: Expected `int | null`, got `str`"),
    "text-for-a-reference": ({"podTemplateRef": "training", "replicas": 1}, "spec: Expected `object | null`"),
    "no-quantity": ({**_TRAINING, "limits": {"cpu": "much"}}, "quantities must match"),
    "number-for-a-strategy": ({"provisioningStrategy": 7}, "exactly one of podTemplateRef"),
    "no-such-kind": ({"scalableRef": {"kind": "Rocket", "name": "x"}, "replicas": 1}, "scalableRef: Rocket: not supp"),
}


async def test_a_buffer_that_cannot_be_read_says_why() -> None:
    async with world([]) as made:
        await _install(made)
        for name, (spec, _) in _UNREADABLE.items():
            await _buffer(made, name, **spec)
        await made.rounds(1)
        for name, (_, want) in _UNREADABLE.items():
            status, reason, message = (await _status(made, name))["conditions"]["ReadyForProvisioning"]
            assert (status, reason) == ("False", "error")
            assert want in message


async def test_buffers_of_a_namespace_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """One user's buffers must not make a plan last for ever, or leave those of other namespaces without a turn."""
    monkeypatch.setattr(capacitybuffers, "_MOST_PODS", 5)
    monkeypatch.setattr(capacitybuffers, "_MOST_BUFFERS", 3)
    async with world([]) as made:
        await _install(made)
        for name in "abcd":
            await _buffer(made, name, **_WEB, replicas=3)
        await made.rounds(1)
        assert [(await _status(made, name)).get("replicas") for name in "abcd"] == [3, 2, 0, None]
        _, reason, message = (await _status(made, "d"))["conditions"]["ReadyForProvisioning"]
        assert (reason, message) == ("error", "the namespace has more than 3 buffers")
