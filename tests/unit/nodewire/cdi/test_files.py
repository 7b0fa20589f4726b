"""Files of drivers: written whole, in the oldest version that can say them, and read back as they were."""

import json
from pathlib import Path

import msgspec
import pytest

from drachma import errors
from drachma.nodewire.cdi import files, registry, spec


def _spec(name: str = "gpu-0", *, annotations: dict[str, str] | None = None) -> spec.Spec:
    edits = spec.ContainerEdits(env=("GPU=0",))
    device = spec.Device(name=name, container_edits=edits)
    return spec.Spec(kind="gpu.example.com/device", devices=(device,), annotations=annotations or {})


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "cdi" / files.file_name("gpu.example.com/device", transient="claim/1")
    files.write(path, _spec())
    assert path.name == "gpu.example.com-device_claim_1.json"
    assert registry.load(path).devices == _spec().devices
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "version"),
    [
        pytest.param(_spec(), "0.3.0", id="env"),
        pytest.param(_spec("0"), "0.5.0", id="name-of-digits"),
        pytest.param(_spec(annotations={"a": "b"}), "0.6.0", id="annotation"),
    ],
)
def test_the_version_is_the_oldest_that_can_say_it(tmp_path: Path, content: spec.Spec, version: str) -> None:
    files.write(tmp_path / "a.json", content)
    assert json.loads((tmp_path / "a.json").read_text())["cdiVersion"] == version


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(_spec("a b"), "invalid character ' ' in device name", id="name-of-device"),
        pytest.param(
            _spec(annotations={"-a": "b"}), "gpu.example.com/device.annotations.-a is invalid", id="annotation"
        ),
        pytest.param(
            _spec(annotations={"a": "x" * 300_000}), "annotations size 300001 is larger than limit 262144", id="size"
        ),
    ],
)
def test_nothing_is_written_where_a_rule_is_broken(tmp_path: Path, content: spec.Spec, problem: str) -> None:
    files.write(tmp_path / "a.json", _spec())
    before = (tmp_path / "a.json").read_bytes()
    with pytest.raises(errors.InvalidValueError, match=problem):
        files.write(tmp_path / "a.json", content)
    assert (tmp_path / "a.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_not_there_can_be_removed(tmp_path: Path) -> None:
    files.write(tmp_path / "a.json", _spec())
    files.remove(tmp_path / "a.json")
    files.remove(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_a_file_may_be_too_old_for_all_devices_but_the_last(tmp_path: Path) -> None:
    mapped = spec.ContainerEdits(device_nodes=(spec.DeviceNode(path="/dev/a", host_path="/dev/b"),))
    plain = spec.ContainerEdits(env=("A=1",))

    def load(*edits: spec.ContainerEdits) -> spec.Spec:
        devices = tuple(spec.Device(name=f"d{number}", container_edits=each) for number, each in enumerate(edits))
        content = spec.Spec(cdi_version="0.3.0", kind="gpu.example.com/device", devices=devices)
        path = tmp_path / "a.json"
        path.write_bytes(msgspec.json.encode(content))
        return registry.load(path)

    assert len(load(mapped, plain).devices) == 2
    with pytest.raises(errors.InvalidValueError, match=r"must be at least v0\.5\.0"):
        load(plain, mapped)
