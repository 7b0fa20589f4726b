"""Effort of evaluation: long evaluations end when their allowance is used up."""

import pytest

from drachma import cel
from drachma.bounds import effort
from tests.property.cel_hostile import DEVICE, ENV


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("lists.range(1000000).size() == 1", id="large-list"),
        pytest.param("lists.range(1000).all(i, lists.range(1000).all(j, i + j >= 0))", id="nested-loops"),
    ],
)
def test_evaluation_for_a_device_spends_effort(expression: str) -> None:
    program = cel.compile_expression(expression, ENV)
    with pytest.raises(effort.OverrunError), effort.limit(effort.Allowance(effort.LOOP_UNITS)):
        program.evaluate(DEVICE)
