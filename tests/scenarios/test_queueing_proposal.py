"""KEP-2941's complete example, as its text has it: read from ``../shared/keps``, never copied.

The text leaves out the namespace, the local queue and the flavor of its steps; and its cluster queue names no
namespaces, so that Kueue would admit nothing into it until somebody says which.
"""

import re
from typing import Any

import pytest
import yaml

from drachma import errors
from drachma.client import patches
from drachma.queueing.component import ActiveConfiguration, configurationmap, resources
from tests.conformance import vectors
from tests.scenarios import queues

_TEXT = vectors.folder().parent / "keps" / "kueue-KEP-2941-dra-quota.md"
_AROUND = """
apiVersion: v1
kind: Namespace
metadata: {name: gpu-test1}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: user-queue, namespace: gpu-test1}
spec: {clusterQueue: gpus-cluster-queue}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-gpu-flavor}
"""


def _block(beginning: str) -> str:
    """The example of the text that begins so."""
    if not _TEXT.is_file():
        pytest.skip(vectors.required(_TEXT))
    match = re.search(rf"^```yaml\n({re.escape(beginning)}.*?)^``", _TEXT.read_text(encoding="utf-8"), re.M | re.S)
    assert match is not None, beginning
    return match[1]


def _configuration(config_map: dict[str, Any]) -> dict[str, Any]:
    (document,) = configurationmap.parse(config_map["data"]["config.yaml"])
    return dict(document)


async def test_the_complete_example_ends_in_the_status_that_the_text_shows() -> None:
    config_map, *steps, want = yaml.safe_load_all(_block("# Step 1"))
    async with queues.queues(configuration=_configuration(config_map)) as cluster:
        await cluster.apply(_AROUND, yaml.safe_dump_all(steps))
        (waiting,) = await cluster.all_of(resources.WORKLOADS)
        (condition,) = [each for each in waiting.status.conditions if each.type == "QuotaReserved"]
        assert condition.message == "workload namespace doesn't match ClusterQueue selector"

        patch = patches.merge({"spec": {"namespaceSelector": {}}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "gpus-cluster-queue", patch=patch)
        await cluster.settle()
        document = await cluster.client.get_document(
            resources.WORKLOADS, waiting.metadata.name, namespace=want["metadata"]["namespace"]
        )

    assert waiting.metadata.name.rpartition("-")[0] == want["metadata"]["name"].rpartition("-")[0]
    assert document["status"]["admission"] == want["status"]["admission"]


def test_the_invalid_configuration_is_refused_with_the_reason() -> None:
    (config_map,) = yaml.safe_load_all(_block("# INVALID"))
    with pytest.raises(errors.InvalidValueError) as refusal:
        ActiveConfiguration().offer(_configuration(config_map))
    assert str(refusal.value) == (
        "resources.deviceClassMappings[1].deviceClassNames[0]: Invalid value: "
        '"gpus.example.com": device class already mapped to resource whole-gpus'
    )
