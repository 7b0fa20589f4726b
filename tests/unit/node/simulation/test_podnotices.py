"""Events about pods of drivers whose containers are simulated."""

import pytest

from drachma.api.pod import HostPathVolume, Pod, Volume
from drachma.node.simulation import podnotices
from tests.unit.node.pods import fakes


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/var/lib/kubelet/plugins_registry", ["SimulatedDriver"], id="registers-with-the-kubelet"),
        pytest.param("/var/lib/kubelet/plugins/gpu.example.com", ["SimulatedDriver"], id="its-own-folder"),
        pytest.param("/var/lib/kubelet/pods", [], id="another-folder-of-the-kubelet"),
    ],
)
async def test_a_warning_for_pods_of_drivers(path: str, want: list[str]) -> None:
    reasons: list[str] = []

    def record(pod: Pod, reason: str, message: str) -> None:
        assert "--profile" in message
        reasons.append(reason)

    volume = Volume(name="plugins", host_path=HostPathVolume(path=path))
    await podnotices.SimulatedSetups(record).begin(fakes.make_pod(volumes=(volume,)))
    assert reasons == want
