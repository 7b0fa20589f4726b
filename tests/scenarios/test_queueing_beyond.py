"""What a QueueingPolicy adds to queueing, as users of a whole control plane see it."""

from typing import Any

from drachma.api import devicetaintrule, event, namespace, resourceclaimtemplate
from drachma.client import patches
from tests.scenarios import queues

_MAPPED: dict[str, Any] = {
    **queues.MAPPED,
    "resources": {
        "deviceClassMappings": [
            {"name": "gpus", "deviceClassNames": [queues.GPU_CLASS, "any"]},
            {"name": "rare", "deviceClassNames": ["rare"]},
        ]
    },
}
_CLASSES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.simulation.drachma.dev"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: rare}
spec: {selectors: [{cel: {expression: 'device.driver == "nobody.example.com"'}}]}
"""
_PREFERRING = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: preferring}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        firstAvailable:
        - {name: rare, deviceClassName: rare}
        - {name: any, deviceClassName: any, count: 2}
"""


_LARGER_NODE = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: larger}}
spec:
  driver: gpu.simulation.drachma.dev
  nodeName: larger
  pool: {{name: larger, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join(f"{{name: gpu-{number}}}" for number in range(12))}]
"""


_NEW_GPU = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: new}}
spec:
  driver: {queues.GPU_CLASS}
  allNodes: true
  pool: {{name: new, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: gpu-99, attributes: {{index: {{int: 99}}}}}}]
"""


def _template(name: str, exactly: str) -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {exactly}}}]}}}}}}
"""


async def _usage(cluster: queues.Queues, job: str) -> dict[str, str]:
    """What a job's only pod set is charged with, beside cpu."""
    admission = (await cluster.workload_of(job)).status.admission
    assert admission is not None, await cluster.workload_condition(job, "QuotaReserved")
    (assignment,) = admission.pod_set_assignments
    return {name: str(amount) for name, amount in assignment.resource_usage.items() if name != "cpu"}


async def _told(cluster: queues.Queues, reason: str) -> list[str]:
    return [each.message for each in await cluster.all_of(event.Event) if each.reason == reason]


async def _queue_usage(cluster: queues.Queues) -> dict[str, str]:
    (flavor,) = (await cluster.status_of("team"))["flavorsUsage"]
    return {each["name"]: each["total"] for each in flavor["resources"]}


async def test_alternatives_are_charged_as_an_envelope_and_settled() -> None:
    policy = {"firstAvailable": "Envelope"}
    async with queues.queues(configuration=_MAPPED, policy=policy) as cluster:
        await cluster.apply(_CLASSES, _PREFERRING)
        await cluster.create_queue(cpu=100, gpus=4, rare=2)
        await cluster.create_job("first", pods=2, template="preferring", seconds=600)

        assert await _usage(cluster, "first") == {"gpus": "4", "rare": "0"}
        told = await _told(cluster, "DevicesSettled")
        assert any(each.startswith("Settled to the allocated devices: main: rare 0 of ") for each in told)
        assert await _queue_usage(cluster) == {"cpu": "2", "gpus": "4", "rare": "0"}

        await cluster.create_job("second", pods=1, template="preferring")
        _, reason, message = await cluster.workload_condition("second", "QuotaReserved")
        assert reason == "WaitingForQuota"
        assert "insufficient unused quota for gpus in flavor default, 2 more needed" in message


async def test_all_devices_are_charged_at_the_worst_and_settled() -> None:
    policy = {"allDevices": "WorstCase"}
    async with queues.queues(configuration=_MAPPED, policy=policy) as cluster:
        await cluster.create_queue(cpu=100, gpus=12)
        await cluster.apply(_LARGER_NODE, _template("every", "{deviceClassName: any, allocationMode: All}"), _CLASSES)
        await cluster.create_job("greedy", template="every", seconds=600)

        assert await _usage(cluster, "greedy") == {"gpus": "8"}
        assert await _told(cluster, "DevicesSettled") == ["Settled to the allocated devices: main: gpus 8 of 12"]
        await cluster.create_job("modest", template="one-gpu")
        assert await _usage(cluster, "modest") == {"gpus": "1"}


_FIRST_TWO: dict[str, Any] = {
    "selectedDevices": [
        {
            "name": "first",
            "deviceClassNames": [queues.GPU_CLASS],
            "deviceSelector": {"cel": {"expression": f'device.attributes["{queues.GPU_CLASS}"].index < 2'}},
        }
    ]
}


async def test_devices_that_an_expression_selects_are_charged_and_settled() -> None:
    async with queues.queues(configuration=_MAPPED, policy=_FIRST_TWO) as cluster:
        await cluster.create_queue(cpu=100, gpus=8, first=3)
        await cluster.create_job("first", pods=3, template="one-gpu", seconds=600)
        assert await _usage(cluster, "first") == {"gpus": "3", "first": "2"}

        await cluster.create_job("second", pods=1, template="one-gpu", seconds=600)
        assert await _usage(cluster, "second") == {"gpus": "1", "first": "0"}
        assert await _queue_usage(cluster) == {"cpu": "4", "first": "2", "gpus": "4"}

        await cluster.create_job("wide", pods=2, template="one-gpu")
        _, reason, message = await cluster.workload_condition("wide", "QuotaReserved")
        assert reason == "WaitingForQuota"
        assert "insufficient unused quota for first in flavor default, 1 more needed" in message


async def test_a_new_device_that_is_selected_evicts_a_job_without_quota_for_it() -> None:
    """No device was selected when the job was admitted, so nothing is reserved for one."""
    selector = f'device.attributes["{queues.GPU_CLASS}"].index > 90'
    (selection,) = _FIRST_TWO["selectedDevices"]
    policy = {"selectedDevices": [{**selection, "deviceSelector": {"cel": {"expression": selector}}}]}
    async with queues.queues(configuration=_MAPPED, policy=policy) as cluster:
        await cluster.create_queue(cpu=100, gpus=9)
        await cluster.create_job("all", pods=9, template="one-gpu", seconds=600)
        assert await _usage(cluster, "all") == {"gpus": "9"}

        await cluster.apply(_NEW_GPU)
        await cluster.advance(60)
        assert await cluster.is_suspended("all")
        told = (await cluster.workload_condition("all", "Evicted"))[2]
        assert "Devices of pod set main were allocated that count for 1 of first, and 0 is reserved" in told


async def test_a_template_that_is_made_anew_with_more_devices_evicts() -> None:
    async with queues.queues(configuration=_MAPPED, policy={"templates": "Pinned"}) as cluster:
        await cluster.create_queue(cpu=100, gpus=4)
        await cluster.create_job("job", pods=2, template="one-gpu", seconds=600)
        assert await _usage(cluster, "job") == {"gpus": "2"}

        await cluster.client.delete(resourceclaimtemplate.ResourceClaimTemplate, "one-gpu", namespace="default")
        await cluster.apply(queues.TEMPLATE)
        assert await _usage(cluster, "job") == {"gpus": "2"}

        await cluster.client.delete(resourceclaimtemplate.ResourceClaimTemplate, "one-gpu", namespace="default")
        await cluster.apply(_template("one-gpu", f"{{deviceClassName: {queues.GPU_CLASS}, count: 2}}"))
        await cluster.advance(60)
        assert await _usage(cluster, "job") == {"gpus": "4"}
        assert (await cluster.workload_condition("job", "Evicted"))[2] == (
            'Previously: ResourceClaimTemplate "one-gpu" recreated since it was counted: '
            "pod set main needs 2 of gpus per pod and has 1"
        )


async def test_what_no_node_can_place_waits_and_others_go_before_it() -> None:
    async with queues.queues(configuration=_MAPPED, policy={"feasibility": "Required"}, nodes=2) as cluster:
        await cluster.create_queue(cpu=100, gpus=16)
        await cluster.apply(
            _template("nine-gpus", f"{{deviceClassName: {queues.GPU_CLASS}, count: 9}}"),
            _template("five-gpus", f"{{deviceClassName: {queues.GPU_CLASS}, count: 5}}"),
        )
        await cluster.create_job("wide", template="nine-gpus")
        assert await cluster.is_suspended("wide")
        status, reason, message = await cluster.workload_condition("wide", "QuotaReserved")
        assert (status, reason) == ("False", "PlacementFailed")
        assert message.startswith("couldn't place pod set main after 0 pod(s): 0/2 nodes are available")

        await cluster.create_job("three", pods=3, template="five-gpus", seconds=600)
        _, _, message = await cluster.workload_condition("three", "QuotaReserved")
        assert message.startswith("couldn't place pod set main after 2 pod(s): ")
        await cluster.create_job("two", pods=2, template="five-gpus", seconds=60)
        assert await _usage(cluster, "two") == {"gpus": "10"}
        assert await cluster.phases() == {"Running": 2}

        await cluster.create_job("one", template="five-gpus", seconds=60)
        assert await cluster.is_suspended("one")
        await cluster.advance(120)
        assert await _usage(cluster, "one") == {"gpus": "5"}


_TAINTED = """
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: maintenance}
spec:
  deviceSelector: {driver: gpu.simulation.drachma.dev}
  taint: {key: example.com/maintenance, effect: NoSchedule}
"""


async def test_devices_that_a_rule_taints_are_no_place_for_a_workload() -> None:
    async with queues.queues(configuration=_MAPPED, policy={"feasibility": "Required"}) as cluster:
        await cluster.create_queue(cpu=100, gpus=8)
        await cluster.apply(_TAINTED)
        await cluster.create_job("job", template="one-gpu", seconds=60)
        assert await cluster.is_suspended("job")
        status, reason, _ = await cluster.workload_condition("job", "QuotaReserved")
        assert (status, reason) == ("False", "PlacementFailed")

        await cluster.delete(devicetaintrule.DeviceTaintRule, "maintenance")
        assert not await cluster.is_suspended("job")
        assert await cluster.phases() == {"Running": 1}


_SHARED = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: shared}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {queues.GPU_CLASS}, count: 2}}}}]}}}}
"""


async def test_a_claim_by_name_is_charged_once_and_passed_on() -> None:
    async with queues.queues(configuration=_MAPPED, policy={"namedClaims": "Shared"}) as cluster:
        await cluster.create_queue(cpu=100, gpus=3)
        await cluster.create_job("first", pods=2, claim="shared", seconds=60)
        _, reason, message = await cluster.workload_condition("first", "QuotaReserved")
        assert reason == "Misconfigured"
        assert 'resourceclaims.resource.k8s.io "shared" not found' in message

        await cluster.apply(_SHARED)
        assert await _usage(cluster, "first") == {"gpus": "2"}
        await cluster.create_job("second", pods=2, claim="shared", seconds=600)
        assert await _usage(cluster, "second") == {}
        assert await cluster.phases() == {"Running": 4}
        assert (await _queue_usage(cluster))["gpus"] == "2"

        await cluster.advance(120)
        assert (await cluster.workload_condition("first", "Finished"))[0] == "True"
        assert (await _queue_usage(cluster))["gpus"] == "2"
        await cluster.create_job("third", pods=2, template="one-gpu")
        assert await cluster.is_suspended("third")

        await cluster.advance(900)
        assert (await cluster.workload_condition("second", "Finished"))[0] == "True"
        assert not await cluster.is_suspended("third")


_CARDS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: card}
spec: {selectors: [{cel: {expression: 'device.driver == "card.example.com"'}}], extendedResourceName: example.com/card}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: cards}
spec:
  driver: card.example.com
  nodeName: node-0
  pool: {name: cards, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: slow, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "2"}}}}
  - {name: fast, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "4"}}}}
"""
_WATCHING = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: watching}
spec:
  spec:
    devices:
      requests:
      - name: all
        exactly:
          deviceClassName: rare
          allocationMode: All
          adminAccess: true
          selectors: [{cel: {expression: 'device.driver == "nobody.example.com"'}}]
"""
_WITH_SIDECAR = """
apiVersion: batch/v1
kind: Job
metadata: {name: beside, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - name: proxy
        image: proxy
        restartPolicy: Always
        resources: {requests: {example.com/card: "1"}, limits: {example.com/card: "1"}}
      containers:
      - name: train
        image: train
        resources: {requests: {example.com/card: "2"}, limits: {example.com/card: "2"}}
"""


async def test_watching_is_free_and_nodes_and_sidecars_are_charged() -> None:
    mappings = [*_MAPPED["resources"]["deviceClassMappings"], {"name": "cards", "deviceClassNames": ["card"]}]
    mapped = {**_MAPPED, "resources": {"deviceClassMappings": mappings}}
    policy = {"adminAccess": "Free", "nodeAllocatable": "Charged", "sidecars": "Charged"}
    async with queues.queues(configuration=mapped, policy=policy) as cluster:
        await cluster.apply(_CLASSES, _CARDS, _template("two-cards", "{deviceClassName: card, count: 2}"))
        await cluster.create_queue(cpu=100, gpus=1, cards=9)
        await cluster.create_job("monitor", template="watching")
        assert "resourceclaimtemplates" in (await cluster.workload_condition("monitor", "QuotaReserved"))[2]
        labels = patches.merge({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
        await cluster.client.patch(namespace.Namespace, "default", patch=labels)
        await cluster.apply(_WATCHING)
        assert await _usage(cluster, "monitor") == {}

        await cluster.create_job("computing", cpu="1", template="two-cards")
        admission = (await cluster.workload_of("computing")).status.admission
        assert admission is not None
        usage = {name: str(amount) for name, amount in admission.pod_set_assignments[0].resource_usage.items()}
        # One for the container, and those of the cards: at most eight, and six when both are allocated.
        assert usage == {"cpu": "7", "cards": "2"}
        assert await _told(cluster, "DevicesSettled") == ["Settled to the allocated devices: main: cpu 7 of 9"]

        await cluster.apply(_WITH_SIDECAR)
        assert await _usage(cluster, "beside") == {"cards": "3"}
