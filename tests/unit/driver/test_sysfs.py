"""Standard attributes of PCI devices, from a sysfs of this test."""

import pathlib

import pytest

from drachma import driver, errors

ADDRESS = "0000:3b:00.0"


def _sysfs(folder: pathlib.Path, *, below: str = "pci0000:3a/0000:3a:00.0", numa_node: str | None = "1\n") -> None:
    real = folder / "devices" / below / ADDRESS
    real.mkdir(parents=True)
    if numa_node is not None:
        (real / "numa_node").write_text(numa_node)
    devices = folder / "bus" / "pci" / "devices"
    devices.mkdir(parents=True)
    (devices / ADDRESS).symlink_to(real)


def test_a_device_has_all_of_them(tmp_path: pathlib.Path) -> None:
    _sysfs(tmp_path)
    attributes = driver.pci_attributes(ADDRESS, sysfs=tmp_path)
    assert attributes == {
        "resource.kubernetes.io/pciBusID": ADDRESS,
        "resource.kubernetes.io/pcieRoot": "pci0000:3a",
        "resource.kubernetes.io/numaNode": 1,
    }
    built = driver.device("gpu-0").attributes(model="x").with_attributes(attributes).build()
    assert built.attributes["resource.kubernetes.io/numaNode"].int_value == 1
    assert built.attributes["model"].string_value == "x"


@pytest.mark.parametrize("text", [None, "-1\n", "no number"])
def test_a_machine_may_not_tell_the_numa_node(tmp_path: pathlib.Path, text: str | None) -> None:
    _sysfs(tmp_path, numa_node=text)
    assert "resource.kubernetes.io/numaNode" not in driver.pci_attributes(ADDRESS, sysfs=tmp_path)


def test_the_first_root_counts(tmp_path: pathlib.Path) -> None:
    _sysfs(tmp_path, below="pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0")
    assert driver.pci_attributes(ADDRESS, sysfs=tmp_path)["resource.kubernetes.io/pcieRoot"] == "pci0000:00"


@pytest.mark.parametrize(
    ("address", "below", "want"),
    [
        pytest.param("3b:00", "pci0000:3a", "expected the form 0000:00:01.0", id="malformed"),
        pytest.param("0000:3b:00.0/../x", "pci0000:3a", "expected the form 0000:00:01.0", id="a-path"),
        pytest.param("0000:99:00.0", "pci0000:3a", "No such file or directory", id="no-such-device"),
        pytest.param(ADDRESS, "platform/soc", "is not below a PCIe root", id="no-root"),
    ],
)
def test_what_is_refused(tmp_path: pathlib.Path, address: str, below: str, want: str) -> None:
    _sysfs(tmp_path, below=below)
    with pytest.raises(errors.DriverError, match=want):
        driver.pci_attributes(address, sysfs=tmp_path)
