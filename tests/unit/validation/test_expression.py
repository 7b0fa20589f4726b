"""Expressions that are being written: what the API refuses of them, and in which words."""

import pytest

from drachma import cel
from drachma.api import gates
from drachma.validation import expression, limits
from drachma.validation.path import Path

AT = Path("spec")
OVERFLOW = "program instantiation failed: type conversion error from 'string' to 'int'"
SCALAR = "a primitive scalar (string, integer, boolean, semver)"
COSTLY = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a + b + c != '')))"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("device.driver == 'a'", [], id="bool"),
        pytest.param("device.attributes['a'].b", [], id="unknown-until-it-is-evaluated"),
        pytest.param("1", ['spec: Invalid value: "1": must evaluate to bool or the unknown type, not int'], id="int"),
        pytest.param(
            "int('x') == 1", [f"spec: Internal error: {OVERFLOW}"], id="a-constant-that-cannot-be-converted-is-internal"
        ),
        pytest.param(COSTLY, ["spec: Forbidden: too complex, exceeds cost limit"], id="too-complex"),
        pytest.param(
            "x" * (limits.CEL_BYTES + 1), ["spec: Too long: may not be more than 10240 bytes"], id="too-long-to-compile"
        ),
    ],
)
def test_selector(text: str, want: list[str]) -> None:
    assert list(map(str, expression.check_selector(text, AT, gates=gates.ALL))) == want


@pytest.mark.parametrize(
    ("text", "want", "cost"),
    [
        pytest.param("device.driver", [], 2, id="string"),
        pytest.param("[device.driver]", [], 12, id="list"),
        pytest.param("int('x')", [f"spec: Internal error: {OVERFLOW}"], 0, id="a-refused-one-costs-nothing"),
        pytest.param(
            "1.5",
            [f'spec: Invalid value: "1.5": must evaluate to {SCALAR} or a list of these scalars, not double'],
            0,
            id="double",
        ),
    ],
)
def test_derived_attribute(text: str, want: list[str], cost: int) -> None:
    found, total = expression.check_derived(text, AT, gates=gates.ALL)
    assert list(map(str, found)) == want
    assert total == cost


def test_lists_need_their_gate() -> None:
    without = gates.ALL.switched({"DRAListTypeAttributes": False})
    (found,), _ = expression.check_derived("[device.driver]", AT, gates=without)
    assert str(found).endswith(
        "must evaluate to a primitive scalar (string, integer, boolean, semver), not list(string)"
    )


def test_one_program_serves_validation_and_whoever_else_compiles_there() -> None:
    programs = cel.device_programs(consumable_capacity=True, list_type_attributes=True, expressions=cel.Expressions.NEW)
    program = programs.selector("device.driver == 'once'")
    before = len(programs)
    assert not expression.check_selector("device.driver == 'once'", AT, gates=gates.ALL)
    assert len(programs) == before
    assert programs.selector("device.driver == 'once'") is program
