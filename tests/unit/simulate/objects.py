"""Small clusters with GPUs, and groups of nodes that have some."""

from drachma import testing
from drachma.api import meta, pod
from drachma.scheduler.snapshot import gangs
from drachma.simulate import NodeGroup

DRIVER = "gpu.example.com"
CLASS = testing.device_class(DRIVER, f'device.driver == "{DRIVER}"').build()
CPU = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def gpu_slice(node: str, count: int) -> meta.Object:
    devices = [f"gpu-{number}" for number in range(count)]
    return testing.resource_slice(f"{node}-gpus", driver=DRIVER, pool=node).on_node(node).devices(*devices).build()


def gpu_node(name: str, count: int) -> tuple[meta.Object, ...]:
    return testing.node(name, allocatable=CPU).build(), gpu_slice(name, count)


def template(name: str, count: int = 1) -> meta.Object:
    return testing.claim_template(name).request("gpu", device_class=DRIVER, count=count, mode="ExactCount").build()


def claim(name: str) -> testing.ClaimBuilder:
    return testing.claim(name).request("gpu", device_class=DRIVER, count=1, mode="ExactCount")


def gpu_pod(name: str, gpus: str = "one", cpu: str = "1") -> pod.Pod:
    return testing.pod(name).claim("gpu", template=gpus).container("c", requests={"cpu": cpu}, claims=("gpu",)).build()


def gang_pod(name: str, gang: str, size: int, *, cpu: str = "1") -> pod.Pod:
    made = testing.pod(name).claim("gpu", template="one").container("c", requests={"cpu": cpu}, claims=("gpu",))
    return made.label(gangs.LABEL, gang).annotation(gangs.SIZE, str(size)).build()


def cpu_pod(name: str, cpu: str = "1") -> pod.Pod:
    return testing.pod(name).container("c", requests={"cpu": cpu}).build()


def gpu_group(name: str, gpus: int, *, price: float = 1.0, most: int = 1000) -> NodeGroup:
    node, *slices = gpu_node("template", gpus)
    return NodeGroup(name=name, node=node, slices=tuple(slices), price=price, max=most)  # type: ignore[arg-type]


def cpu_group(name: str, *, price: float = 1.0) -> NodeGroup:
    return NodeGroup(name=name, node=testing.node("template", allocatable=CPU).build(), price=price)
