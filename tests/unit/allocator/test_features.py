"""Feature gates become features of the allocator."""

import msgspec
import pytest

from drachma import errors
from drachma.allocator import features
from drachma.api import gates


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param([], features.Features(), id="none"),
        pytest.param(["all"], features.ALL, id="all"),
        pytest.param(
            ["DRAAdminAccess", "DRADeviceTaints"],
            features.Features(admin_access=True, device_taints=True),
            id="some",
        ),
        pytest.param(
            ["DRADeviceBindingConditions+DRAResourceClaimDeviceStatus"],
            features.Features(device_binding=True),
            id="two-gates-in-one-entry",
        ),
        pytest.param(
            ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"],
            features.Features(device_binding=True),
            id="two-gates-in-two-entries",
        ),
        pytest.param(["DRADeviceBindingConditions"], features.Features(), id="one-of-two-gates"),
    ],
)
def test_of_names(names: list[str], want: features.Features) -> None:
    assert features.Features.parse_names(names) == want


@pytest.mark.parametrize(
    ("switches", "want"),
    [
        pytest.param("", features.ALL, id="everything-is-on"),
        pytest.param("DRAExtendedResource=false", features.ALL, id="what-means-nothing-here"),
        pytest.param("DRADeviceTaints=false", msgspec.structs.replace(features.ALL, device_taints=False), id="one-off"),
        pytest.param(
            "DRAResourceClaimDeviceStatus=false",
            msgspec.structs.replace(features.ALL, device_binding=False),
            id="one-of-two-gates-off",
        ),
    ],
)
def test_of_gates(switches: str, want: features.Features) -> None:
    assert features.Features.of(gates.Gates.parse(switches)) == want


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(errors.AllocationError, match=r"^feature gate DRANoSuchThing: not known to the allocator$"):
        features.Features.parse_names(["DRANoSuchThing"])
