"""Profiles of vendors get the claims that the documents and demos of the drivers make."""

from typing import Any

import pytest

from drachma import testing
from drachma.api import codec
from drachma.node.simulation import hardware
from drachma.simulate import ClusterState, Simulation, simulation


def request(name: str, device_class: str, expression: str = "", **more: Any) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1, **more}
    if exactly["allocationMode"] == "All":
        del exactly["count"]
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": exactly}


def place(profile: str, devices: dict[str, Any], *, nodes: int = 1) -> list[str]:
    """Return the devices that a claim gets on nodes of a profile; AssertionError if it gets none."""
    built = hardware.build(profile, nodes)
    documents = [*(machine.node for machine in built.machines), *built.all_slices, *built.classes]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": devices}},
    }
    state = ClusterState.of(codec.decode(each) for each in (*documents, template))
    pod = testing.pod("p").uid("p").claim("c", template="t").container("c", claims=("c",)).build()
    outcome = Simulation(state).place(pod)
    assert isinstance(outcome, simulation.Placement), outcome.reason
    return [result.device for each in outcome.allocations for result in each.devices.results]


NVIDIA = "device.attributes['gpu.nvidia.com']"


@pytest.mark.parametrize(
    ("profile", "devices", "want"),
    [
        pytest.param(
            "nvidia-a100",
            {
                "requests": [
                    request("gpu", "gpu.nvidia.com", f"{NVIDIA}.productName.lowerAscii().matches('^.*a100.*$')"),
                ]
            },
            ["gpu-0"],
            id="nvidia-by-product",
        ),
        pytest.param(
            "nvidia-h100",
            {
                "requests": [
                    request(
                        "gpu",
                        "gpu.nvidia.com",
                        f"{NVIDIA}.architecture == 'Hopper' && {NVIDIA}.cudaComputeCapability.isGreaterThan("
                        "semver('8.9.0')) && device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('79Gi')) > 0",
                        count=2,
                    )
                ],
                "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["gpu"]}],
            },
            ["gpu-0", "gpu-1"],
            id="nvidia-two-behind-a-root",
        ),
        pytest.param(
            "nvidia-h100-mig",
            {
                "requests": [
                    request("a", "mig.nvidia.com", f"{NVIDIA}.profile == '1g.10gb'"),
                    request("b", "mig.nvidia.com", f"{NVIDIA}.profile == '2g.20gb'"),
                    request("c", "mig.nvidia.com", f"{NVIDIA}.profile == '3g.40gb'"),
                ],
                "constraints": [{"matchAttribute": "gpu.nvidia.com/parentUUID", "requests": ["a", "b", "c"]}],
            },
            ["gpu-0-mig-1g10gb-19-0", "gpu-0-mig-2g20gb-14-2", "gpu-0-mig-3g40gb-9-4"],
            id="nvidia-parts-of-one-gpu",
        ),
        pytest.param(
            "nvidia-a100-mig",
            {
                "requests": [
                    request("a", "mig.nvidia.com", f"{NVIDIA}.profile == '1g.5gb'"),
                    request("b", "mig.nvidia.com", f"{NVIDIA}.profile == '1g.5gb'"),
                    request("c", "mig.nvidia.com", f"{NVIDIA}.profile == '2g.10gb'"),
                    request("d", "mig.nvidia.com", f"{NVIDIA}.profile == '3g.20gb'"),
                ],
                "constraints": [{"matchAttribute": "gpu.nvidia.com/parentUUID", "requests": []}],
            },
            ["gpu-0-mig-1g5gb-19-0", "gpu-0-mig-1g5gb-19-1", "gpu-0-mig-2g10gb-14-2", "gpu-0-mig-3g20gb-9-4"],
            id="nvidia-parts-of-one-a100",
        ),
        pytest.param(
            "nvidia-gb200",
            {
                "requests": [
                    request("gpus", "gpu.nvidia.com", count=4),
                    request("channel", "compute-domain-default-channel.nvidia.com"),
                ]
            },
            ["gpu-0", "gpu-1", "gpu-2", "gpu-3", "channel-0"],
            id="nvidia-gpus-and-an-imex-channel",
        ),
        pytest.param(
            "amd-mi300x",
            {
                "requests": [
                    request(
                        "gpu", "gpu.amd.com", "device.attributes['gpu.amd.com'].productName.startsWith('AMD_Instinct')"
                    )
                ]
            },
            ["gpu-0-128"],
            id="amd",
        ),
        pytest.param(
            "intel-gaudi",
            {
                "requests": [
                    request(
                        "g",
                        "gaudi.intel.com",
                        "device.attributes['gaudi.intel.com'].model == 'Gaudi3'"
                        " && device.attributes['gaudi.intel.com'].healthy",
                        count=8,
                    )
                ]
            },
            8,
            id="intel-all-eight",
        ),
        pytest.param(
            "intel-gpu",
            {
                "requests": [
                    request(
                        "gpu",
                        "gpu.intel.com",
                        "device.attributes['gpu.intel.com'].family == 'Data Center Max'"
                        " && device.capacity['gpu.intel.com'].memory.isGreaterThan(quantity('64Gi'))",
                        count=2,
                    )
                ],
                "constraints": [{"requests": ["gpu"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
            },
            2,
            id="intel-two-gpus-of-a-root",
        ),
        pytest.param(
            "google-tpu",
            {"requests": [request("tpu", "tpu.google.com", allocationMode="All")]},
            ["accel0", "accel1", "accel2", "accel3"],
            id="google-all-of-a-node",
        ),
        pytest.param(
            "dranet",
            {
                "requests": [
                    request(
                        "nic",
                        "dra.net",
                        "device.attributes['dra.net'].rdma == true && device.attributes['dra.net'].ifName =="
                        " 'gpu3rdma0'",
                    )
                ]
            },
            ["gpu3rdma0"],
            id="dranet-rdma",
        ),
        pytest.param(
            "dra-cpu",
            {"requests": [request("cpus", "dra.cpu", capacity={"requests": {"dra.cpu/cpu": "10"}})]},
            ["cpudevnuma000"],
            id="cpus-of-a-numa-node",
        ),
    ],
)
def test_claims_of_the_demos(profile: str, devices: dict[str, Any], want: list[str] | int) -> None:
    devices_of_pod = place(profile, devices)
    assert len(devices_of_pod) == want if isinstance(want, int) else devices_of_pod == want
