"""Verdicts on many devices cost few evaluations, and errors stay with the device that caused them."""

from __future__ import annotations

import itertools

import pytest

from drachma import allocator, errors
from drachma.allocator import budget, expressions, pool, projection, selectors
from drachma.api import resourceslice
from drachma.testing import device, resource_slice

_FEATURES = allocator.Features.parse_names(["all"])
_COMPILER = selectors.SelectorCompiler(_FEATURES)


class _Counting:
    """A compiler that counts evaluations."""

    def __init__(self) -> None:
        self.evaluations = 0

    def selector(self, expression: str) -> expressions.Selector:
        return _CountingSelector(self, _COMPILER.selector(expression))

    def derivation(self, expression: str) -> expressions.Derivation:
        raise AssertionError(f"not a selector: {expression}")


class _CountingSelector:
    def __init__(self, counter: _Counting, inner: expressions.Selector) -> None:
        self._counter = counter
        self._inner = inner

    @property
    def reads(self) -> frozenset[projection.Path] | None:
        return self._inner.reads

    def matches(self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None) -> bool:
        self._counter.evaluations += 1
        return self._inner.matches(device, driver=driver, interrupt=interrupt)


def _block(*devices: resourceslice.Device, driver: str = "d.example.com") -> pool.Block:
    built = resource_slice("s", driver=driver).on_node("n").build()
    spec = resourceslice.ResourceSliceSpec(driver=driver, pool=built.spec.pool, node_name="n", devices=devices)
    published = resourceslice.ResourceSlice(metadata=built.metadata, spec=spec)
    return allocator.Catalog([published]).view(allocator.Node("n"), _FEATURES).blocks[0]


def _spent() -> budget.Budget:
    return budget.Budget(budget.Limits())


def _many(count: int = 100) -> list[resourceslice.Device]:
    return [
        device(f"d{number}").attributes(model=f"m{number % 4}", uuid=f"u{number}").build() for number in range(count)
    ]


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('device.attributes["d.example.com"].model == "m1"', 4, id="one-for-each-value-read"),
        pytest.param('device.driver == "d.example.com"', 1, id="one-for-the-driver"),
        pytest.param('device.attributes["d.example.com"].uuid == "u7"', 100, id="one-for-each-of-many-values"),
        pytest.param('device.attributes["d.example.com"].exists(name, name == "model")', 100, id="one-for-each-domain"),
    ],
)
def test_devices_that_agree_on_what_is_read_cost_one_evaluation(expression: str, want: int) -> None:
    counting = _Counting()
    judge = expressions.Judge(expression, counting)
    block = _block(*_many())
    first = judge.judge_block(block, _spent())
    assert counting.evaluations == want
    assert judge.judge_block(block, _spent()) == first
    assert counting.evaluations == want


def test_another_block_profits_from_what_is_known() -> None:
    counting = _Counting()
    judge = expressions.Judge('device.attributes["d.example.com"].model == "m1"', counting)
    judge.judge_block(_block(*_many()), _spent())
    judge.judge_block(_block(*_many(50)), _spent())
    assert counting.evaluations == 4


def test_the_same_name_in_another_driver_is_another_attribute() -> None:
    judge = expressions.Judge('device.attributes["d.example.com"].model == "m1"', _COMPILER)
    named = [device("a").attributes(model="m1").build()]
    assert judge.judge_block(_block(*named), _spent()) == (1, 0)
    assert judge.judge_block(_block(*named, driver="e.example.com"), _spent()) == (0, 1)


def test_errors_are_told_apart_from_no() -> None:
    judge = expressions.Judge('device.attributes["d.example.com"].model == "m1"', _COMPILER)
    devices = [device("a").attributes(model="m1"), device("b"), device("c").attributes(model="m2")]
    assert judge.judge_block(_block(*(entry.build() for entry in devices)), _spent()) == (0b001, 0b010)


def test_an_attribute_without_a_value_fails_whatever_is_read() -> None:
    judge = expressions.Judge('device.driver == "d.example.com"', _COMPILER)
    odd = resourceslice.Device(name="b", attributes={"x": resourceslice.DeviceAttribute()})
    version = resourceslice.Device(name="c", attributes={"v": resourceslice.DeviceAttribute(version_value="1")})
    block = _block(device("a").build(), odd, version)
    assert judge.judge_block(block, _spent()) == (0b001, 0b110)
    with pytest.raises(errors.CelError, match=r"^attribute x: unsupported attribute value$"):
        judge.verdict(block, 1)


def test_an_expression_that_does_not_compile_fails_on_every_device() -> None:
    judge = expressions.Judge("noSuchVariable", _COMPILER)
    assert judge.judge_block(_block(*_many(3)), _spent()) == (0, 0b111)
    assert judge.problem.startswith("compilation failed: ERROR: <input>:1:1: undeclared reference")


def test_evaluations_are_steps_of_the_budget() -> None:
    judge = expressions.Judge('device.attributes["d.example.com"].uuid == "u7"', _COMPILER)
    with pytest.raises(budget.ExhaustedError):
        judge.judge_block(_block(*_many()), budget.Budget(budget.Limits(steps=10)))


def test_a_deadline_ends_an_evaluation_that_takes_long() -> None:
    numbers = ", ".join(map(str, range(60)))
    nested = f"[{numbers}].all(a, [{numbers}].all(b, [{numbers}].all(c, a + b + c >= 0)))"
    judge = expressions.Judge(nested, _COMPILER)
    ticks = itertools.count()
    limits = budget.Limits(deadline=10.0, clock=lambda: float(next(ticks)))
    with pytest.raises(budget.ExhaustedError, match=r"^the deadline passed after 1 steps$"):
        judge.judge_block(_block(device("a").build()), budget.Budget(limits))


@pytest.mark.parametrize(
    ("reads", "same"),
    [
        pytest.param(frozenset({("attributes", "d", "a")}), True, id="what-both-have"),
        pytest.param(frozenset({("attributes", "d", "b")}), False, id="an-attribute-that-differs"),
        pytest.param(frozenset({("attributes", "x", "b")}), True, id="another-domain"),
        pytest.param(frozenset({("attributes", "d")}), False, id="a-domain"),
        pytest.param(frozenset({("attributes",)}), False, id="all-attributes"),
        pytest.param(frozenset({("capacity", "d", "m")}), False, id="a-capacity-spelled-differently"),
        pytest.param(frozenset({("allowMultipleAllocations",)}), True, id="whether-it-is-shared"),
        pytest.param(frozenset[tuple[str, ...]](), True, id="nothing"),
        pytest.param(None, False, id="everything"),
    ],
)
def test_projections_tell_devices_apart_by_what_is_read(reads: frozenset[projection.Path] | None, same: bool) -> None:
    first = device("x").attributes(a=1, b=1).capacity("m", "1Gi").build()
    second = device("y").attributes(a=1, b=2).capacity("m", "1024Mi").build()
    project = projection.of(reads, driver="d")
    assert (project(first) == project(second)) is same
