"""Feature gates become features of the allocator."""

import pytest

from drachma import errors
from drachma.allocator import features


@pytest.mark.parametrize(
    ("gates", "want"),
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
def test_of_gates(gates: list[str], want: features.Features) -> None:
    assert features.Features.of_gates(gates) == want


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(errors.AllocationError, match=r"^feature gate DRANoSuchThing: not known to the allocator$"):
        features.Features.of_gates(["DRANoSuchThing"])
