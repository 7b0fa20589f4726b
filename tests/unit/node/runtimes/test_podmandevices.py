"""CDI edits in podman's words."""

import pytest

from drachma import errors
from drachma.node.runtimes import podmandevices
from drachma.nodewire.cdi.spec import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice


@pytest.mark.parametrize(
    ("edits", "want"),
    [
        pytest.param(ContainerEdits(env=("A=1", "B=")), ["--env", "A=1", "--env", "B="], id="variables"),
        pytest.param(
            ContainerEdits(device_nodes=(DeviceNode(path="/dev/a"),)),
            ["--device", "/dev/a:/dev/a:rwm"],
            id="device-at-the-same-path",
        ),
        pytest.param(
            ContainerEdits(device_nodes=(DeviceNode(path="/dev/a", host_path="/dev/b", permissions="r"),)),
            ["--device", "/dev/b:/dev/a:r"],
            id="device-at-another-path",
        ),
        pytest.param(
            ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", options=("ro", "bind", "nosuid")),)),
            ["--volume", "/a:/b:ro,nosuid"],
            id="mount-with-options",
        ),
        pytest.param(
            ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", options=("rbind",)),)),
            ["--volume", "/a:/b"],
            id="mount",
        ),
        pytest.param(ContainerEdits(additional_gids=(5, 6)), ["--group-add", "5", "--group-add", "6"], id="groups"),
    ],
)
def test_edits(edits: ContainerEdits, want: list[str]) -> None:
    assert podmandevices.of_edits(edits) == want


@pytest.mark.parametrize(
    ("edits", "need"),
    [
        pytest.param(
            ContainerEdits(hooks=(Hook(hook_name="prestart", path="/h"),)), r"hook prestart \(/h\)", id="hook"
        ),
        pytest.param(
            ContainerEdits(net_devices=(NetDevice(host_interface_name="eth1", name="n"),)),
            "network device eth1",
            id="network-device",
        ),
        pytest.param(ContainerEdits(intel_rdt=IntelRdt(clos_id="c")), "intelRdt", id="intel-rdt"),
    ],
)
def test_what_podman_has_no_option_for(edits: ContainerEdits, need: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"needs {need}, which"):
        podmandevices.of_edits(edits)
