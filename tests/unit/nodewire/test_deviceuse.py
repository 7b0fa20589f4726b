"""Devices that claims use: which uses exclude each other, and which devices a node can use."""

from typing import Any

import pytest

from drachma.allocator import placement
from drachma.api import codec, resourceslice
from drachma.nodewire import deviceuse
from drachma.nodewire.deviceuse import DeviceUse, PublishedDevice


def _use(pool: str = "n", device: str = "d", **more: Any) -> DeviceUse:
    return DeviceUse(driver=more.pop("driver", "x"), pool=pool, device=device, **more)


@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(_use(), True, id="the-same"),
        pytest.param(_use(device="e"), False, id="another-device"),
        pytest.param(_use(pool="m"), False, id="another-pool"),
        pytest.param(_use(driver="y"), False, id="another-driver"),
        pytest.param(_use(share_id="1"), True, id="a-share-of-it"),
        pytest.param(_use(has_admin_access=True), False, id="an-administrator"),
        pytest.param(_use(pool="n/v1alpha2"), True, id="its-stand-in"),
    ],
)
def test_uses_that_exclude_each_other(other: DeviceUse, *, want: bool) -> None:
    assert _use().excludes(other) is want
    assert other.excludes(_use()) is want


def test_shares_do_not_exclude_each_other() -> None:
    assert not _use(share_id="1").excludes(_use(share_id="2"))


def _slice(name: str, devices: list[Any], *, generation: int = 1, **spec: Any) -> resourceslice.ResourceSlice:
    document = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "x",
            "pool": {"name": spec.pop("pool", name), "generation": generation, "resourceSliceCount": 1},
            "devices": [each if isinstance(each, dict) else {"name": each} for each in devices],
            **spec,
        },
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, resourceslice.ResourceSlice)
    return decoded


def test_devices_that_a_node_can_use() -> None:
    rack = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}]}
    mixed = [{"name": "mine", "nodeName": "n"}, {"name": "theirs", "nodeName": "m"}, {"name": "ours", "allNodes": True}]
    slices = [
        _slice("own", ["a"], nodeName="n"),
        _slice("foreign", ["a"], nodeName="m"),
        _slice("rack", ["a"], nodeSelector=rack),
        _slice("mixed", mixed, perDeviceNodeSelection=True),
        _slice("new", ["b"], pool="renewed", generation=2, nodeName="n"),
        _slice("old", ["a"], pool="renewed", generation=1, nodeName="n"),
    ]
    assert deviceuse.published(slices, placement.Node("n", {"rack": "1"})) == {
        PublishedDevice("own", "a"),
        PublishedDevice("rack", "a"),
        PublishedDevice("mixed", "mine"),
        PublishedDevice("mixed", "ours"),
        PublishedDevice("renewed", "b"),
    }


def test_a_message_that_says_that_devices_are_gone() -> None:
    message = deviceuse.unavailable([_use(), _use(device="e")], "n")
    assert message == "device unavailable: x/n/d, x/n/e are not published for node n"
    assert deviceuse.is_unavailable(message)
    assert not deviceuse.is_unavailable("no connection")
