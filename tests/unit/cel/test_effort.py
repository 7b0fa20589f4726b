"""Effort of evaluation: long evaluations end when their allowance is used up."""

import pytest

from drachma import cel
from drachma.bounds import effort
from drachma.cel.runtime import regex
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


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("[1].map(x," * 90 + "1" + ")" * 90, id="nested-macros"),
        pytest.param("size(" * 200 + "1" + ")" * 200, id="nested-calls"),
        pytest.param("optional.of(1).optMap(x," * 40 + "1" + ")" * 40, id="nested-optionals"),
    ],
)
def test_compilation_that_takes_more_than_ten_milliseconds_is_not_for_the_event_loop(expression: str) -> None:
    with pytest.raises(effort.OverrunError), effort.limit(effort.Allowance(effort.LOOP_UNITS)):
        cel.compile_expression(expression, ENV)


def test_a_pattern_whose_compilation_takes_more_than_ten_milliseconds_is_not_for_the_event_loop() -> None:
    with pytest.raises(effort.OverrunError), effort.limit(effort.Allowance(effort.LOOP_UNITS)):
        regex.compile_pattern(r"(x|(?i:(\PL|[[:^alpha:]]{400})?))")
