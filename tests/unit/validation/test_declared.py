"""The rules of structs: constraints that documents do not have, and what an update leaves alone."""

from typing import Any

import msgspec
import pytest

from drachma.validation import declared, fielderror, rulenotation
from drachma.validation.path import ROOT


class Leaf(msgspec.Struct, frozen=True):
    name: str | None = ""
    mode: str | None = ""


class Owner(msgspec.Struct, frozen=True):
    text: str | None = ""
    leaves: tuple[Any, ...] = ()
    by_name: dict[str, Leaf] = {}


one_choice = declared._Union(name="name", mode="mode")
ok_names = declared._Names(lambda text, at: [] if text == "ok" else [fielderror.invalid(at, text, "bad")])


def errors(rules: str, new: Any, old: Any = None) -> list[str]:
    text = f"Leaf\n    mode!: A|B\nChoice\n    @one_choice\nOwner\n    {rules}\n"
    types = rulenotation.read_as(declared.DeclaredType, text, globals(), declared.read_constraint)
    return [str(error) for error in types["Owner"].change(new, old, ROOT, None)]


def test_a_list_that_is_too_long_has_no_other_error() -> None:
    rules = "leaves: [Leaf limit 1]"
    assert errors(rules, Owner(leaves=(Leaf(), Leaf()))) == ["leaves: Too many: 2: must have at most 1 item"]
    assert errors(rules, Owner()) == []


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        pytest.param("leaves: [Leaf]", ["leaves[0].mode", "leaves[1].mode"], id="without-key-all-again"),
        pytest.param("leaves: [Leaf key name]", ["leaves[1].mode"], id="with-key-only-the-new-one"),
    ],
)
def test_unchanged_items_are_passed_over(rules: str, want: list[str]) -> None:
    old = Owner(leaves=(Leaf("a", "bad"),))
    new = Owner(leaves=(Leaf("a", "bad"), Leaf("b", "bad")))
    assert [error.partition(": ")[0] for error in errors(rules, new, old)] == want
    assert errors(rules, old, old) == []


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        pytest.param("leaves: [dns_label key itself]", ["Duplicate", "Duplicate", "Invalid"], id="first"),
        pytest.param("leaves: [dns_label key itself last]", ["Invalid", "Duplicate", "Duplicate"], id="last"),
    ],
)
def test_each_repetition_is_reported(rules: str, want: list[str]) -> None:
    repeated = errors(rules, Owner(leaves=("x", "x", "-", "x")))
    assert [error.partition(": ")[2].partition(" ")[0] for error in repeated] == want
    assert 'leaves[1]: Duplicate value: "x"' in repeated


def test_constants() -> None:
    assert errors("leaves: const:Leaf", Owner(leaves=("b",)), Owner(leaves=("a",))) == [
        "leaves: Invalid value: null: field is immutable"
    ]
    once = "text?: once:Leaf"
    assert errors(once, Owner("b"), Owner("a")) == ["text: Invalid value: null: field cannot be modified once set"]
    assert errors(once, Owner(None), Owner("a")) == []


@pytest.mark.parametrize(
    ("new", "old", "want"),
    [
        pytest.param(Leaf("a", None), None, [], id="one"),
        pytest.param(Leaf(None, None), None, ['"": must specify one of: `name`, `mode`'], id="none"),
        pytest.param(Leaf("a", "b"), None, ['"{name, mode}": must specify exactly one of: `name`, `mode`'], id="both"),
        pytest.param(Leaf("a", "b"), Leaf("x", "y"), [], id="both-as-before"),
        pytest.param(
            Leaf("a", "b"),
            Leaf("x", None),
            ['"{name, mode}": must specify exactly one of: `name`, `mode`'],
            id="both-since-now",
        ),
    ],
)
def test_unions(new: Leaf, old: Leaf | None, want: list[str]) -> None:
    before = None if old is None else Owner(by_name={"k": old})
    assert errors("byName: {Choice}", Owner(by_name={"k": new}), before) == [
        f"byName[k]: Invalid value: {detail}" for detail in want
    ]


def test_keys_of_maps_are_checked_when_they_are_new() -> None:
    new = Owner(by_name={"b": Leaf(), "a": Leaf(), "ok": Leaf()})
    assert errors("byName: ok_names", new) == [
        'byName: Invalid value: "a": bad',
        'byName: Invalid value: "b": bad',
    ]
    assert errors("byName: ok_names", new, Owner(by_name={"a": Leaf()})) == ['byName: Invalid value: "b": bad']
