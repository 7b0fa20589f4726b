"""The walkthroughs of KEP-5517, with their exact numbers: what pods and the devices of their claims take of a node.

Each runs on a node that has exactly what the KEP says the pod needs, and on nodes that have the least bit less.
"""

from typing import NamedTuple

import pytest

from drachma.api import node
from drachma.values import quantity
from tests.scenarios import controlplane

CLASSES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: socket}
spec: {selectors: [{cel: {expression: 'device.driver == "dra.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""


def socket(capacity: str, mappings: str) -> str:
    """A socket whose capacity is shared."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: n-sockets}}
spec:
  driver: dra.example.com
  nodeName: n
  pool: {{name: n, generation: 1, resourceSliceCount: 1}}
  devices:
  - name: socket0
    allowMultipleAllocations: true
    capacity: {{{capacity}}}
    {mappings}
"""


CPU = 'dra.example.com/cpu: {value: "128"}'
MEMORY = "dra.example.com/memory: {value: 256Gi}"
CPUS = socket(
    CPU,
    'nodeAllocatableResources: {cpu: {mapping: {capacityKey: dra.example.com/cpu, capacityMultiplier: "1"}}}',
)
CPUS_AND_MEMORY = socket(
    f"{CPU}, {MEMORY}",
    """nodeAllocatableResources:
      cpu: {mapping: {capacityKey: dra.example.com/cpu, capacityMultiplier: "1"}}
      memory: {mapping: {capacityKey: dra.example.com/memory, capacityMultiplier: "1"}}""",
)
CPUS_AND_MEMORY_AS_THE_KEP_SPELLS_IT = socket(
    f"{CPU}, {MEMORY}",
    """nodeAllocatableResourceMappings:
      cpu: {capacityKey: dra.example.com/cpu}
      memory: {capacityKey: dra.example.com/memory}""",
)

PLAIN_GPU = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n-gpus}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu0}]
"""

NEEDY_GPU = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n-gpus}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu0
    nodeAllocatableResources:
      cpu: {mapping: {deviceMultiplier: "2"}}
      memory: {mapping: {deviceMultiplier: 4Gi}}
"""


def claim(name: str, cpu: str, memory: str = "") -> str:
    """A claim for a part of the socket."""
    amounts = f'dra.example.com/cpu: "{cpu}"' + (f', dra.example.com/memory: "{memory}"' if memory else "")
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec:
  devices:
    requests:
    - name: part
      exactly:
        deviceClassName: socket
        capacity: {{requests: {{{amounts}}}}}
"""


GPU_CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu-claim}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""

FUNGIBLE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu-or-cpu}
spec:
  spec:
    devices:
      requests:
      - name: either
        firstAvailable:
        - {name: gpu, deviceClassName: gpu, count: 1}
        - name: cpu
          deviceClassName: socket
          capacity: {requests: {dra.example.com/cpu: "30"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: app
    image: registry.example/app:1
    resources: {requests: {cpu: "1", memory: 1Gi}, claims: [{name: either}]}
  resourceClaims: [{name: either, resourceClaimTemplateName: gpu-or-cpu}]
"""


class Walkthrough(NamedTuple):
    """What is applied, what the pod takes of its node, and what its claims are of that."""

    manifests: tuple[str, ...]
    cpu: str
    memory: str
    of_claims: dict[str, dict[str, str]]


STANDARD_AND_CLAIMED = Walkthrough(
    (
        CPUS_AND_MEMORY,
        claim("cpu-mem-claim", "4", "8Gi"),
        """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: app1
    image: registry.example/app:1
    resources: {requests: {cpu: 100m, memory: 100Mi}, claims: [{name: mine}]}
  - name: app2
    image: registry.example/app:2
    resources: {claims: [{name: mine}]}
  resourceClaims: [{name: mine, resourceClaimName: cpu-mem-claim}]
""",
    ),
    "4100m",
    "8292Mi",
    {"cpu-mem-claim": {"cpu": "4", "memory": "8Gi"}},
)

COMBINED = Walkthrough(
    (
        CPUS,
        NEEDY_GPU,
        GPU_CLAIM,
        claim("cpu-claim", "10"),
        """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: app1
    image: registry.example/app:1
    resources: {requests: {cpu: 100m, memory: 1Gi}, claims: [{name: cpus}, {name: gpu}]}
  - name: app2
    image: registry.example/app:2
    resources: {requests: {cpu: 200m, memory: 2Gi}, claims: [{name: cpus}, {name: gpu}]}
  resourceClaims:
  - {name: cpus, resourceClaimName: cpu-claim}
  - {name: gpu, resourceClaimName: gpu-claim}
""",
    ),
    "12300m",
    "7Gi",
    {"cpu-claim": {"cpu": "10"}, "gpu-claim": {"cpu": "2", "memory": "4Gi"}},
)

POD_LEVEL = Walkthrough(
    (
        CPUS,
        claim("ten-cpus", "10"),
        """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resources: {requests: {cpu: "11", memory: 10Gi}, limits: {cpu: "11", memory: 10Gi}}
  containers:
  - {name: app1, image: registry.example/app:1, resources: {claims: [{name: cpus}]}}
  - {name: app2, image: registry.example/app:2, resources: {claims: [{name: cpus}]}}
  - {name: sidecar1, image: registry.example/app:3}
  - {name: sidecar2, image: registry.example/app:4}
  resourceClaims: [{name: cpus, resourceClaimName: ten-cpus}]
""",
    ),
    "11",
    "10Gi",
    {"ten-cpus": {"cpu": "10"}},
)

SEVERAL_CLAIMS = Walkthrough(
    (
        CPUS,
        claim("a", "4"),
        claim("b", "2"),
        """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c1
    image: registry.example/app:1
    resources: {requests: {cpu: "1", memory: 1Gi}, claims: [{name: a}, {name: b}]}
  - name: c2
    image: registry.example/app:2
    resources: {requests: {cpu: "2"}, claims: [{name: a}]}
  resourceClaims: [{name: a, resourceClaimName: a}, {name: b, resourceClaimName: b}]
""",
    ),
    "9",
    "1Gi",
    {"a": {"cpu": "4"}, "b": {"cpu": "2"}},
)

UNREFERENCED = Walkthrough(
    (
        CPUS_AND_MEMORY,
        claim("a", "4", "1Gi"),
        """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: registry.example/app:1, resources: {requests: {cpu: "1", memory: 1Gi}}}
  resourceClaims: [{name: a, resourceClaimName: a}]
""",
    ),
    "5",
    "2Gi",
    {"a": {"cpu": "4", "memory": "1Gi"}},
)

WALKTHROUGHS = [
    pytest.param(STANDARD_AND_CLAIMED, id="use-case-1-standard-and-claimed"),
    pytest.param(
        STANDARD_AND_CLAIMED._replace(
            manifests=(CPUS_AND_MEMORY_AS_THE_KEP_SPELLS_IT, *STANDARD_AND_CLAIMED.manifests[1:])
        ),
        id="use-case-1-as-the-kep-spells-it",
    ),
    pytest.param(Walkthrough((CPUS, PLAIN_GPU, FUNGIBLE), "1", "1Gi", {}), id="use-case-2-gpu-selected"),
    pytest.param(Walkthrough((CPUS, FUNGIBLE), "31", "1Gi", {"*": {"cpu": "30"}}), id="use-case-2-cpu-selected"),
    pytest.param(COMBINED, id="use-case-3-native-and-auxiliary"),
    pytest.param(POD_LEVEL, id="use-case-4-pod-level-budget"),
    pytest.param(SEVERAL_CLAIMS, id="several-claims-in-one-container"),
    pytest.param(UNREFERENCED, id="unreferenced-claim"),
]


def a_node(cpu: str, memory: str) -> str:
    amounts = f'{{cpu: "{cpu}", memory: "{memory}", pods: "110"}}'
    return f"""
apiVersion: v1
kind: Node
metadata: {{name: n}}
status:
  capacity: {amounts}
  allocatable: {amounts}
  conditions: [{{type: Ready, status: "True"}}]
  declaredFeatures: [DRANodeAllocatableResources]
"""


async def started(plane: controlplane.ControlPlane, walkthrough: Walkthrough, *, cpu: str, memory: str) -> None:
    await plane.apply(a_node(cpu, memory), CLASSES, *walkthrough.manifests)


def less(amount: str, by: str) -> str:
    return str(quantity.Quantity.parse(amount) - quantity.Quantity.parse(by))


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS)
async def test_a_node_with_exactly_that_much(walkthrough: Walkthrough) -> None:
    async with controlplane.control_plane() as plane:
        await started(plane, walkthrough, cpu=walkthrough.cpu, memory=walkthrough.memory)
        assert await plane.node_of("p") == "n", await plane.why("p")
        statuses = (await plane.pod("p")).status.node_allocatable_resource_claim_statuses
        mapped_amounts = {each.resource_claim_name: {k: str(v) for k, v in each.mapped().items()} for each in statuses}
        if "*" in walkthrough.of_claims:
            mapped_amounts = dict.fromkeys("*", next(iter(mapped_amounts.values())))
        assert mapped_amounts == walkthrough.of_claims


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS)
async def test_a_millicore_less_is_not_enough(walkthrough: Walkthrough) -> None:
    async with controlplane.control_plane() as plane:
        await started(plane, walkthrough, cpu=less(walkthrough.cpu, "1m"), memory=walkthrough.memory)
        assert await plane.node_of("p") == ""
        assert "1 Insufficient cpu" in await plane.why("p")


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS)
async def test_a_byte_less_is_not_enough(walkthrough: Walkthrough) -> None:
    async with controlplane.control_plane() as plane:
        await started(plane, walkthrough, cpu=walkthrough.cpu, memory=less(walkthrough.memory, "1"))
        assert await plane.node_of("p") == ""
        assert "1 Insufficient memory" in await plane.why("p")


@pytest.mark.parametrize("walkthrough", WALKTHROUGHS)
async def test_a_scheduler_that_restarts_counts_the_same(walkthrough: Walkthrough) -> None:
    """The ledger is rebuilt from what the pod's status says of its claims."""
    async with controlplane.control_plane() as plane:
        await started(plane, walkthrough, cpu=walkthrough.cpu, memory=walkthrough.memory)
        await plane.kill()
        await plane.apply(probe("late", "1m"))
        await plane.start_scheduler()
        assert await plane.node_of("late") == ""
        assert "1 Insufficient cpu" in await plane.why("late")
        stored_node = await plane.client.get(node.Node, "n")
        more = {"cpu": str(stored_node.status.allocatable["cpu"] + quantity.Quantity.parse("1m"))}
        await plane.patch_status(stored_node, {"allocatable": more})
        await plane.advance(10)
        assert await plane.node_of("late") == "n"


def probe(name: str, cpu: str) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - {{name: c, image: registry.example/app:1, resources: {{requests: {{cpu: {cpu}}}}}}}
"""


async def test_a_budget_that_claims_exceed_is_refused_everywhere() -> None:
    cpus, claim, pod = POD_LEVEL.manifests
    pod = pod.replace('cpu: "11"', 'cpu: "9"')
    async with controlplane.control_plane() as plane:
        await plane.apply(a_node("64", "64Gi"), CLASSES, cpus, claim, pod)
        assert await plane.node_of("p") == ""
        assert "1 pod level request for cpu is insufficient to cover" in await plane.why("p")
