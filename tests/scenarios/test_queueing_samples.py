"""Kueue's own samples for devices, applied end to end as they are; read from ``../shared/kueue``, never copied."""

import pathlib
from typing import Any

import pytest
import yaml

from drachma.api import job
from drachma.queueing.component import configurationmap
from tests.conformance import vectors
from tests.scenarios import queues

_SAMPLES = vectors.folder().parent / "kueue" / "examples"
_CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
"""
_SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node-0
  pool: {name: node-0, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    allowMultipleAllocations: true
    capacity: {memory: {value: 80Gi}}
"""
_COUNTERS = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node-0
  pool: {name: node-0, generation: 1, resourceSliceCount: 2}
  devices:
  - name: gpu-0
    attributes: {type: {string: gpu}, profile: {string: 1g.10gb}}
    consumesCounters: [{counterSet: memory, counters: {memory: {value: 40Gi}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.example.com
  nodeName: node-0
  pool: {name: node-0, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: memory, counters: {memory: {value: 80Gi}}}]
"""


def _sample(name: str) -> str:
    path = pathlib.Path(_SAMPLES / name)
    if not path.is_file():
        pytest.skip(vectors.required(path))
    return path.read_text(encoding="utf-8")


def _mapped_to(resource: str) -> dict[str, Any]:
    (document,) = configurationmap.parse(_sample("config-whole-device.yaml"))
    mappings = [{"name": resource, "deviceClassNames": ["gpu.example.com"]}]
    return {**document, "resources": {"deviceClassMappings": mappings}}


@pytest.mark.parametrize(
    ("configuration", "queue", "sample", "slices", "want"),
    [
        pytest.param(
            None, "sample-dra-queues.yaml", "sample-dra-rct-job.yaml", _SLICE, {"example.com/gpu": "1"}, id="templates"
        ),
        pytest.param(
            None,
            "sample-dra-queues.yaml",
            "sample-dra-extended-resource-job.yaml",
            _SLICE,
            {"example.com/gpu": "1"},
            id="extended-resources",
        ),
        pytest.param(
            "config-counter.yaml",
            "sample-dra-counter-queues.yaml",
            "sample-dra-counter-job.yaml",
            _COUNTERS,
            {"gpu.memory": "40Gi"},
            id="counters",
        ),
        pytest.param(
            "config-capacity.yaml",
            "sample-dra-capacity-queues.yaml",
            "sample-dra-capacity-job.yaml",
            _SLICE,
            # The sample asks for gpu.example.com/memory where the configuration names memory, which Kueue takes for
            # another one: the whole capacity is charged.
            {"gpu.memory": "80Gi"},
            id="capacity",
        ),
    ],
)
async def test_a_sample_is_admitted_with_its_devices(
    configuration: str | None, queue: str, sample: str, slices: str, want: dict[str, str]
) -> None:
    given = _mapped_to("example.com/gpu")
    if configuration is not None:
        (given,) = configurationmap.parse(_sample(configuration))
    async with queues.queues(configuration=given) as cluster:
        await cluster.apply(_CLASS, slices, _sample(queue), _named(_sample(sample)))

        admission = (await cluster.workload_of("sample")).status.admission
        assert admission is not None
        assert admission.cluster_queue == "cluster-queue"
        (assignment,) = admission.pod_set_assignments
        usage = {name: str(amount) for name, amount in assignment.resource_usage.items()}
        assert usage == {"cpu": "1", "memory": "200Mi", **want}
        assert not await cluster.is_suspended("sample")
        assert len(await cluster.all_of(job.Job)) == 1


def _named(text: str) -> str:
    """A sample whose job has a name, in place of one that is drawn."""
    documents = list(yaml.safe_load_all(text))
    for each in documents:
        if each["metadata"].pop("generateName", None):
            each["metadata"]["name"] = "sample"
    return yaml.safe_dump_all(documents)
