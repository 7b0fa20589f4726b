"""The language of declared rules: stops, ratcheting on update, and keys of lists."""

from typing import Any

import msgspec
import pytest

from drachma.validation import declared
from drachma.validation.declared import Field, TypeRules, Values
from drachma.validation.path import ROOT


class Leaf(msgspec.Struct, frozen=True):
    name: str = ""
    mode: str = ""


class Owner(msgspec.Struct, frozen=True):
    text: str = ""
    leaves: tuple[Leaf, ...] = ()


LEAF = TypeRules((Field("mode", "mode", (declared.required,), (declared.one_of("B", "A"),)),))
BY_NAME = declared.key_of("name")


def errors(rules: TypeRules, new: Any, old: Any = None) -> list[str]:
    return list(map(str, rules(Values(new, old, old is not None), ROOT)))


def leaves(*rules: declared.Rule, limit: int = 3) -> TypeRules:
    return TypeRules((Field("leaves", "leaves", (declared.optional, declared.max_items(limit)), rules),))


def test_a_stop_ends_a_field() -> None:
    rules = leaves(declared.each(LEAF), limit=1)
    assert errors(rules, Owner(leaves=(Leaf(), Leaf()))) == ["leaves: Too many: 2: must have at most 1 item"]
    assert errors(rules, Owner()) == []


def test_enumerations_are_listed_in_order() -> None:
    assert errors(leaves(declared.each(LEAF)), Owner(leaves=(Leaf(mode="C"),))) == [
        'leaves[0].mode: Unsupported value: "C": supported values: "A", "B"'
    ]


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(declared.each(LEAF), ["leaves[0].mode", "leaves[1].mode"], id="without-key-all-again"),
        pytest.param(declared.each(LEAF, key=BY_NAME), ["leaves[1].mode"], id="with-key-only-the-new-one"),
    ],
)
def test_unchanged_items_are_passed_over(rule: declared.Rule, want: list[str]) -> None:
    old = Owner(leaves=(Leaf("a", "bad"),))
    new = Owner(leaves=(Leaf("a", "bad"), Leaf("b", "bad")))
    assert [error.partition(": ")[0] for error in errors(leaves(rule), new, old)] == want
    assert errors(leaves(rule), old, old) == []


def test_duplicates_are_reported_once_per_repetition() -> None:
    owner = Owner(leaves=(Leaf("a"), Leaf("a"), Leaf("a")))
    rules = TypeRules((Field("leaves", "leaves", (), (declared.unique(lambda leaf: leaf.name),)),))
    with pytest.raises(TypeError, match="Leaf is not a value of an API object"):
        errors(rules, owner)
    texts = TypeRules((Field("leaves", "leaves", (), (declared.unique(declared.itself),)),))
    assert errors(texts, msgspec.structs.replace(owner, leaves=("x", "x", "x"))) == [
        'leaves[1]: Duplicate value: "x"',
        'leaves[2]: Duplicate value: "x"',
    ]


def test_immutable_and_unmodifiable_fields() -> None:
    rules = TypeRules((Field("text", "text", (declared.immutable,)),))
    assert errors(rules, Owner("b"), Owner("a")) == ["text: Invalid value: null: field is immutable"]
    assert errors(rules, Owner("b")) == []


@pytest.mark.parametrize(
    ("new", "old", "want"),
    [
        pytest.param(Leaf("a"), None, [], id="one"),
        pytest.param(Leaf(), None, ['[]: Invalid value: "": must specify one of: `name`, `mode`'], id="none"),
        pytest.param(
            Leaf("a", "b"),
            None,
            ['[]: Invalid value: "{name, mode}": must specify exactly one of: `name`, `mode`'],
            id="both",
        ),
        pytest.param(Leaf("a", "b"), Leaf("x", "y"), [], id="both-as-before"),
        pytest.param(
            Leaf("a", "b"),
            Leaf("x"),
            ['[]: Invalid value: "{name, mode}": must specify exactly one of: `name`, `mode`'],
            id="both-since-now",
        ),
    ],
)
def test_unions(new: Leaf, old: Leaf | None, want: list[str]) -> None:
    def as_pointers(leaf: Leaf | None) -> Any:
        return leaf and msgspec.structs.replace(leaf, name=leaf.name or None, mode=leaf.mode or None)

    rule = declared.union((("name", "name"), ("mode", "mode")))
    found = rule(Values(as_pointers(new), as_pointers(old), old is not None), ROOT)
    assert [f"[]{error}" for error in found] == want


def test_keys_of_maps_are_checked_when_they_are_new() -> None:
    rule = declared.each_key(declared.text_format(lambda text: ["bad"] if text != "ok" else [], origin="x"))
    fresh = [str(error) for error in rule(Values({"b": 1, "a": 1, "ok": 1}), ROOT)]
    assert fresh == [': Invalid value: "a": bad', ': Invalid value: "b": bad']
    later = [str(error) for error in rule(Values({"b": 1, "a": 1}, {"a": 1}, is_update=True), ROOT)]
    assert later == [': Invalid value: "b": bad']
