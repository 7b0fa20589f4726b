"""Feature gates: upstream's names, and what can be read from the command line."""

import pytest

from drachma import errors
from drachma.api import gates
from drachma.api.gates import Gate


def test_everything_implemented_is_on() -> None:
    assert gates.ALL.on(Gate.LIST_TYPE_ATTRIBUTES)
    assert not gates.ALL.on(Gate.WORKLOAD_RESOURCE_CLAIMS)


def test_parse() -> None:
    parsed = gates.Gates.parse("DRAAdminAccess=false, DRAResourcePoolStatus=T,")
    assert parsed.enabled == gates.ALL.enabled - {Gate.ADMIN_ACCESS} | {Gate.RESOURCE_POOL_STATUS}
    assert gates.Gates.parse("") == gates.ALL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("DRAMagic=true", "unrecognized feature gate: DRAMagic", id="unknown"),
        pytest.param("DRAAdminAccess", "missing bool value for DRAAdminAccess", id="no-value"),
        pytest.param("DRAAdminAccess=maybe", "invalid value of DRAAdminAccess=maybe", id="no-boolean"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=message):
        gates.Gates.parse(text)


def test_gates_are_not_locked_and_do_not_depend_on_each_other() -> None:
    """Kubernetes 1.37 has locked the first gate, and refuses the second without it."""
    switched = gates.ALL.switched({"DynamicResourceAllocation": False})
    assert not switched.on(gates.Gate.CORE)
    assert switched.on(gates.Gate.EXTENDED_RESOURCE)
