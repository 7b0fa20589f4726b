"""Parts: what is written alike is one part, which remembers what was worked out, within limits."""

from typing import Any

import msgspec
import pytest

from drachma.server import parts
from drachma.values import quantity


class Work:
    """Counts how often something is worked out."""

    def __init__(self) -> None:
        self.count = 0

    def size(self, document: dict[str, Any], factor: int = 1) -> int:
        self.count += 1
        return len(document) * factor

    def extended(self, document: dict[str, Any], key: str) -> dict[str, Any]:
        self.count += 1
        return {**document, key: 1}

    def refuse(self, document: dict[str, Any]) -> None:
        self.count += 1
        raise ValueError(document)


def test_documents_that_are_written_alike_are_one_part() -> None:
    interner = parts.Interner()
    first = interner.part({"a": [1, {"b": None}]})
    assert interner.part({"a": [1, {"b": None}]}) is first
    assert interner.read(b'{"a":[1,{"b":null}]}') is first
    assert parts.Interner().read(b'{"a":[1,{"b":null}]}').value == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param({"a": 1}, {"a": True}, id="number-and-boolean"),
        pytest.param({"a": 1}, {"a": 1.0}, id="integer-and-float"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="order"),
    ],
)
def test_what_is_written_otherwise_is_another_part(left: object, right: object) -> None:
    interner = parts.Interner()
    assert interner.part(left) is not interner.part(right)


class Metres(msgspec.Struct, frozen=True, omit_defaults=True):
    amount: quantity.Quantity | None = None


class Seconds(Metres, frozen=True):
    """Written like metres."""


def test_structs_of_one_type_that_are_written_alike_are_one_part() -> None:
    interner = parts.Interner()
    amounts = [quantity.Quantity.parse(text) for text in ("1", "1", "1000m")]
    first, again, otherwise = (interner.part(Metres(amount)) for amount in amounts)
    assert first is again
    assert first is not otherwise
    assert interner.part(Seconds(amounts[0])) is not first
    assert interner.part(Metres()) is not interner.part({})
    assert interner.part(Metres()).value == Metres()


def test_results_are_remembered_by_function_and_arguments() -> None:
    work, interner = Work(), parts.Interner()
    for _ in range(3):
        part = interner.part({"a": 1, "b": 2})
        assert (part.derive(work.size), part.derive(work.size, 3)) == (2, 6)
    assert work.count == 2
    other = Work()
    assert part.derive(other.size) == 2
    assert other.count == 1


def test_a_change_is_a_part_and_made_once() -> None:
    work, interner = Work(), parts.Interner()
    for _ in range(3):
        changed = interner.part({"a": 1}).changed(work.extended, "b")
    assert changed is interner.part({"a": 1, "b": 1})
    assert changed.changed(work.extended, "b") is changed
    assert work.count == 2


def test_refusals_are_not_remembered() -> None:
    work, interner = Work(), parts.Interner()
    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            interner.part({"a": 1}).derive(work.refuse)
    assert work.count == 2


def test_what_is_in_use_outlives_any_number_of_others() -> None:
    work, interner = Work(), parts.Interner(most=10)
    for number in range(1000):
        interner.part({"number": number})
        interner.part({"used": "always"}).derive(work.size)
        assert len(interner) <= 20
    assert work.count == 1


def test_what_is_not_in_use_is_forgotten() -> None:
    interner = parts.Interner(most=10)
    first = interner.part({"once": 1})
    for number in range(20):
        interner.part({"number": number})
    assert interner.part({"once": 1}) is not first


def test_bytes_are_bounded() -> None:
    interner = parts.Interner(most_bytes=1000)
    for number in range(1000):
        interner.part({"number": f"{number:090}"})
    assert len(interner) <= 20


def test_large_ones_are_not_kept() -> None:
    interner = parts.Interner(largest=100)
    large = interner.part({"a": "x" * 200})
    assert (len(interner), large.value) == (0, {"a": "x" * 200})


def test_a_forgetful_interner_works_everything_out_again() -> None:
    work, interner = Work(), parts.forgetful()
    assert [interner.part({"a": 1}).derive(work.size) for _ in range(3)] == [1, 1, 1]
    assert (work.count, len(interner)) == (3, 0)


def test_the_very_value_of_a_part_finds_it_after_others_came_and_went() -> None:
    interner = parts.Interner(most=10)
    value = {"used": "always"}
    part = interner.part(value)
    for number in range(100):
        assert interner.part(value) is interner.part({"used": "always"}) is part
        interner.part({"number": number})
        assert len(interner._by_id) <= 10
