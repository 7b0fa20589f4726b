"""kubectl with kinds that users define: a driver's parameters, and Kueue's definitions as they are published."""

import json

import pytest

from tests.conformance import vectors
from tests.e2e.conftest import Kubectl, Watch

PARAMETERS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gpuparameters.gpu.example.com
spec:
  group: gpu.example.com
  scope: Namespaced
  names: {plural: gpuparameters, singular: gpuparameter, kind: GpuParameters, shortNames: [gp], categories: [gpus]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Strategy, type: string, jsonPath: .spec.sharing.strategy}
    schema:
      openAPIV3Schema:
        type: object
        description: How a GPU is set up for a claim.
        properties:
          spec:
            type: object
            description: What is wanted.
            properties:
              sharing:
                type: object
                default: {}
                properties:
                  strategy:
                    description: How time on the GPU is shared.
                    type: string
                    enum: [TimeSlicing, MPS]
                    default: TimeSlicing
                  replicas: {type: integer, minimum: 1, maximum: 8}
                x-kubernetes-validations:
                - {rule: "!has(self.replicas) || self.strategy == 'MPS'", message: replicas are for MPS}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
SHARED = """\
apiVersion: gpu.example.com/v1
kind: GpuParameters
metadata: {name: shared}
spec: {sharing: {strategy: MPS, replicas: 4}}
"""


@pytest.fixture
def parameters(kubectl: Kubectl) -> None:
    """The definition of a driver's parameters, which is there as soon as it is applied."""
    kubectl("apply", "-f", "-", stdin=PARAMETERS)


@pytest.mark.usefixtures("parameters")
def test_kubectl_knows_a_kind_as_soon_as_it_is_defined(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Established", "--timeout=90s", "crd/gpuparameters.gpu.example.com")
    assert "gpuparameters" in kubectl("api-resources", "--api-group=gpu.example.com")
    explained = kubectl("explain", "gpuparameters.spec.sharing.strategy")
    assert "How time on the GPU is shared." in explained
    assert "ENUM:\n    TimeSlicing\n    MPS" in explained


@pytest.mark.usefixtures("parameters")
def test_apply_read_change_watch_delete(kubectl: Kubectl, watch: Watch) -> None:
    assert kubectl("apply", "-f", "-", stdin=SHARED) == "gpuparameters.gpu.example.com/shared created\n"
    assert kubectl("apply", "-f", "-", stdin=SHARED) == "gpuparameters.gpu.example.com/shared unchanged\n"
    assert kubectl("apply", "--server-side", "-f", "-", stdin=SHARED).endswith("serverside-applied\n")
    assert kubectl("get", "gp").split() == ["NAME", "STRATEGY", "shared", "MPS"]
    assert "shared" in kubectl("get", "gpus")
    refused = kubectl(
        "patch", "gp", "shared", "--type=merge", "-p", '{"spec":{"sharing":{"strategy":"TimeSlicing"}}}', fails=True
    )
    assert "spec.sharing: Invalid value: replicas are for MPS" in refused
    kubectl("patch", "gp", "shared", "--subresource=status", "--type=merge", "-p", '{"status":{"nodes":2}}')
    seen = json.loads(kubectl("get", "gp", "shared", "-o", "json"))
    assert (seen["status"], seen["metadata"]["generation"]) == ({"nodes": 2}, 1)
    with watch("gp", "--output-watch-events", "-o", "name") as next_line:
        assert "shared" in next_line()
    unknown = kubectl("apply", "-f", "-", stdin=SHARED.replace("replicas", "copies"), fails=True)
    assert 'unknown field "spec.sharing.copies"' in unknown
    assert "deleted" in kubectl("delete", "gp", "shared")


@pytest.mark.usefixtures("parameters")
def test_a_definition_goes_with_its_objects(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=SHARED)
    kubectl("delete", "crd", "gpuparameters.gpu.example.com", "--timeout=90s")
    assert "NotFound" in kubectl("get", "gpuparameters", fails=True)


def test_kueue_installs(kubectl: Kubectl) -> None:
    folder = vectors.folder().parent / "kueue" / "crds"
    if not folder.is_dir():
        pytest.skip(vectors.required(folder))
    kubectl("apply", "--server-side", "-f", str(folder))
    try:
        kubectl("wait", "--for=condition=Established", "--timeout=90s", "crd/workloads.kueue.x-k8s.io")
        assert "nominalQuota" in kubectl("explain", "clusterqueue.spec.resourceGroups.flavors.resources")
        kubectl("apply", "-f", "-", stdin=_QUEUE)
        assert kubectl("get", "clusterqueue", "gpus", "-o", "jsonpath={.spec.queueingStrategy}") == "BestEffortFIFO"
        assert "BestEffortFIFO" in kubectl("get", "cq", "-o", "wide")
    finally:
        kubectl("delete", "-f", str(folder), "--timeout=90s")


_QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 9}]
"""
