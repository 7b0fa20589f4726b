"""Simulated machines from files: a machine as it is, or a node group that was learned from one."""

import pathlib

from drachma import testing
from drachma.api import manifest
from drachma.offline import machineprofiles
from drachma.simulate import grouplearning
from drachma.simulate.clusterstate import ClusterState

_SERIAL = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def _state() -> ClusterState:
    gpu = testing.device("gpu-0").attribute("uuid", f"GPU-{_SERIAL}")
    slices = testing.resource_slice("s", driver="gpu.example.com", pool="secret-host").on_node("secret-host")
    return ClusterState.of([testing.node("secret-host").build(), slices.devices(gpu).build()])


def test_a_learned_node_group_is_a_profile(tmp_path: pathlib.Path) -> None:
    learned = grouplearning.learn(_state(), "secret-host", name="gpu")
    file = tmp_path / "group.yaml"
    file.write_text(manifest.write_yaml([learned.document]))
    assert "secret-host" not in file.read_text()
    assert _SERIAL not in file.read_text()
    built = machineprofiles.build(str(file), 2)
    assert len(built.machines) == 2
    serials = {each["spec"]["devices"][0]["attributes"]["uuid"]["string"] for each in built.all_slices}
    assert len(serials) == len(built.all_slices) == 2
