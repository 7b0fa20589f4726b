"""Feature gates of queueing."""

import pytest

from drachma import errors
from drachma.queueing.configuration import gates


def test_the_name_of_the_enhancement_proposal_is_accepted() -> None:
    switched = gates.DEFAULT.switched({"DynamicResourceAllocation": False})

    assert gates.DEFAULT.on(gates.Gate.DRA)
    assert not switched.on(gates.Gate.DRA)


def test_two_names_of_a_gate_must_agree() -> None:
    names = {"DynamicResourceAllocation": True, "KueueDRAIntegration": False}
    with pytest.raises(errors.InvalidValueError, match="KueueDRAIntegration: is both on and off"):
        gates.DEFAULT.switched(names)
    assert gates.DEFAULT.switched(dict.fromkeys(names, False)).on(gates.Gate.DRA) is False


def test_gates_of_what_does_not_exist_here_change_nothing() -> None:
    assert gates.DEFAULT.switched({"MultiKueue": False}) == gates.DEFAULT


def test_an_unknown_gate_is_refused_by_name() -> None:
    with pytest.raises(errors.InvalidValueError, match="unrecognized feature gate: Nonsense"):
        gates.DEFAULT.switched({"Nonsense": True})
