"""Messages from tables: the bytes that generated code sends."""

import pytest

from drachma.nodewire.rpc import messages


@pytest.mark.parametrize(
    ("message", "data"),
    [
        pytest.param(messages.REGISTRATION.InfoRequest(), b"", id="empty"),
        pytest.param(
            messages.REGISTRATION.PluginInfo(
                type="DRAPlugin", name="d", endpoint="", supported_versions=["v1.DRAPlugin"]
            ),
            b"\x0a\x09DRAPlugin\x12\x01d\x22\x0cv1.DRAPlugin",
            id="texts-and-lists",
        ),
        pytest.param(messages.DRA.Device(share_id=""), b"\x2a\x00", id="an-optional-text-that-is-empty"),
        pytest.param(messages.DRA.Device(pool_name=""), b"", id="a-text-that-is-empty"),
        pytest.param(
            messages.DRA.NodeUnprepareResourcesResponse(
                claims={"u": messages.DRA.NodeUnprepareResourceResponse(error="e")}
            ),
            b"\x0a\x08\x0a\x01u\x12\x03\x0a\x01e",
            id="map",
        ),
        pytest.param(
            messages.DRA_1_30.NamedResourcesAttributeValue(bool=False, int=0, version="1"),
            b"\x10\x00\x38\x00\x52\x011",
            id="values-that-may-be-absent",
        ),
        pytest.param(messages.HEALTH.DeviceHealth(health=2), b"\x10\x02", id="enum"),
        pytest.param(
            messages.POD_RESOURCES.DynamicResource(claim_name="c", claim_namespace="n"),
            b"\x12\x01c\x1a\x01n",
            id="number",
        ),
    ],
)
def test_bytes(message: object, data: bytes) -> None:
    assert message.SerializeToString() == data  # type: ignore[attr-defined]
    assert type(message).FromString(data) == message  # type: ignore[attr-defined]


def test_shares_are_lost_in_the_older_version() -> None:
    device = messages.DRA_BETA.Device.FromString(messages.DRA.Device(pool_name="p", share_id="s").SerializeToString())
    assert device.pool_name == "p"
    assert not hasattr(device, "share_id")
