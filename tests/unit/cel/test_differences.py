"""Where CEL differs from upstream on purpose (docs/differences.md)."""

import pytest

from drachma import cel
from drachma.cel import environment, program, types
from drachma.cel.runtime import regex
from tests.unit.cel import running


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "google.protobuf.Int32Value{value: 1} == 1", "message literals are not supported", id="well-known-message"
        ),
        pytest.param("[optional.of(1), ?dyn(1)].size() == 2", "expected type", id="optional-elements-of-mixed-types"),
        pytest.param('{b"a": 1}.size() == 1', "hash of unhashable type", id="bytes-as-a-key"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    with pytest.raises(cel.CompilationError, match=message):
        cel.compile_expression(expression, running.ENV)


def test_compilation_stops_at_the_first_syntax_error() -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression("(1 + ) || [2 + ", running.ENV)
    assert str(caught.value).count("Syntax error") == 1


def test_sorting_is_stable_for_many_elements() -> None:
    numbers = ", ".join(str(number) for number in range(40))
    by_remainder = sorted(range(40), key=lambda number: number % 2)
    expression = f"[{numbers}].sortBy(x, x % 2) == [{', '.join(map(str, by_remainder))}]"
    assert running.value(expression) is True


@pytest.mark.parametrize("name", ["Cn", "Assigned", "LC", "ASCII"])
def test_classes_that_re2_does_not_know(name: str) -> None:
    with pytest.raises(regex.PatternError, match="invalid character class range"):
        regex.compile_pattern(rf"\p{{{name}}}")


def test_maps_are_iterated_in_the_order_of_their_entries() -> None:
    assert running.value("{'b': 1, 'a': 2, 'c': 3}.map(k, k) == ['b', 'a', 'c']") is True
    assert running.value("{'c': 1, 'b': 2, 'a': 3}.map(k, k) == ['c', 'b', 'a']") is True


def test_values_that_are_nested_too_deeply_are_an_internal_error() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    env = environment.plain_environment({"x": types.DYN})
    compiled = program.compile_expression("'%s'.format([x]) == ''", env)
    for result in (
        compiled.evaluate_variables({"x": deep}),
        compiled.evaluate_stepwise({"x": deep}),
    ):
        assert "values nested too deeply" in str(result.value)
