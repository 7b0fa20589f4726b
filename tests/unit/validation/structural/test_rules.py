"""CEL rules of custom resources: what they see, what they say, what they may cost, and what updates are spared."""

from typing import Any

import pytest

from drachma.validation.structural import rules, schema
from drachma.validation.structural.correlation import NOTHING


def _rules(**spec: Any) -> rules.Rules:
    return rules.Rules(schema.parse({"type": "object", "properties": {"spec": {"type": "object", **spec}}}))


def _check(checked: rules.Rules, spec: Any, old: Any = NOTHING, warnings: list[str] | None = None) -> list[str]:
    before = NOTHING if old is NOTHING else {"metadata": {"name": "w"}, "spec": old}
    found = checked.check({"metadata": {"name": "w"}, "spec": spec}, old=before, warnings=warnings)
    return [str(error) for error in found]


def _field(kind: str, *written: dict[str, Any], **more: Any) -> rules.Rules:
    return _rules(properties={"x": {"type": kind, "x-kubernetes-validations": list(written), **more}})


_RESERVED = "!has(self.namespace) || self.namespace == self.?package.orValue('')"
_OVER = "'%d over %d'.format([self.a, self.b])"


@pytest.mark.parametrize(
    ("checked", "value", "want"),
    [
        pytest.param(
            _field("string", {"rule": "self != 'root'", "message": "not root", "reason": "FieldValueForbidden"}),
            "root",
            "spec.x: Forbidden: not root",
            id="reason",
        ),
        pytest.param(
            _field("string", {"rule": "!self.contains(' ')"}),
            "a b",
            "spec.x: Invalid value: \"a b\": failed rule: !self.contains(' ')",
            id="no-message",
        ),
        pytest.param(
            _field("array", {"rule": "self.size() < 2", "message": "few"}, items={"type": "string"}),
            ["a", "b"],
            "spec.x: Invalid value: few",
            id="value-of-a-list-is-not-shown",
        ),
        pytest.param(
            _field(
                "object",
                {"rule": "self.a < self.b", "messageExpression": _OVER, "fieldPath": ".a"},
                properties={"a": {"type": "integer"}, "b": {"type": "integer"}},
            ),
            {"a": 3, "b": 2},
            "spec.x.a: Invalid value: 3 over 2",
            id="message-and-path",
        ),
        pytest.param(
            _field("object", {"rule": "self.a > 1"}, properties={"a": {"type": "integer"}}),
            {},
            'spec.x: Invalid value: "object": no such key: a evaluating rule: self.a > 1',
            id="error",
        ),
        pytest.param(
            _field("object", {"rule": "self.a__dash__b == self.__in__"}, properties={
                "a-b": {"type": "string"}, "in": {"type": "string"},
            }),
            {"a-b": "x", "in": "y"},
            "spec.x: Invalid value: failed rule: self.a__dash__b == self.__in__",
            id="escaped-names",
        ),
        pytest.param(
            _field("object", {"rule": _RESERVED}, properties={
                "namespace": {"type": "string"}, "package": {"type": "string"},
            }),
            {"namespace": "x", "package": "y"},
            f"spec.x: Invalid value: failed rule: {_RESERVED}",
            id="words-of-the-language-as-names",
        ),
        pytest.param(
            _field("string", {"rule": "self < duration('1h')", "message": "short"}, format="duration"),
            "90m",
            'spec.x: Invalid value: "90m": short',
            id="durations",
        ),
    ],
)  # fmt: skip
def test_message(checked: rules.Rules, value: Any, want: str) -> None:
    assert _check(checked, {"x": value}) == [want]


def test_names_of_the_object_can_be_seen() -> None:
    checked = rules.Rules(
        schema.parse(
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'v'", "message": "v"}]}
        )
    )
    assert [str(error) for error in checked.check({"metadata": {"name": "w"}})] == ["<nil>: Invalid value: v"]


def test_rules_about_changes() -> None:
    checked = _field("string", {"rule": "self == oldSelf", "message": "fixed"})
    assert _check(checked, {"x": "a"}) == []
    assert _check(checked, {"x": "a"}, {}) == []
    assert _check(checked, {"x": "a"}, {"x": "b"}) == ['spec.x: Invalid value: "a": fixed']


def test_rules_about_changes_of_what_may_be_new() -> None:
    rule = {"rule": "oldSelf.hasValue() && oldSelf.value() == self", "optionalOldSelf": True, "message": "once"}
    checked = _field("string", rule)
    assert _check(checked, {"x": "a"}) == ['spec.x: Invalid value: "a": once']
    assert _check(checked, {"x": "a"}, {"x": "a"}) == []


def test_what_was_wrong_before_is_a_warning() -> None:
    checked = _field("string", {"rule": "self != 'bad'", "message": "bad"})
    warnings: list[str] = []
    assert _check(checked, {"x": "bad", "y": 1}, {"x": "bad"}, warnings) == []
    assert warnings == ['spec.x: Invalid value: "bad": bad']


@pytest.mark.parametrize(
    ("kind", "value", "old", "want"),
    [
        pytest.param("set", ["a", "b"], ["b", "a"], [], id="sets-have-no-order"),
        pytest.param("atomic", ["a", "b"], ["b", "a"], ["spec.x: Invalid value: same"], id="lists-have-one"),
    ],
)
def test_equality_of_lists(kind: str, value: Any, old: Any, want: list[str]) -> None:
    checked = _field(
        "array",
        {"rule": "self == oldSelf", "message": "same"},
        items={"type": "string"},
        **{"x-kubernetes-list-type": kind},
    )
    assert _check(checked, {"x": value}, {"x": old}) == want


def test_lists_with_keys_are_equal_in_any_order_and_added_by_key() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}
    keyed = {"items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    first, second = {"k": "1", "v": "a"}, {"k": "2", "v": "b"}
    equal = _field("array", {"rule": "self == oldSelf", "message": "same"}, **keyed)
    assert _check(equal, {"x": [first, second]}, {"x": [second, first]}) == []
    added = _field("array", {"rule": "(self + oldSelf).size() == 2", "message": "two"}, **keyed)
    assert _check(added, {"x": [first, second]}, {"x": [second, first]}) == []


def test_the_budget_of_an_object_is_shared() -> None:
    item = {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^(a|b)*$')"}]}
    checked = _rules(properties={"x": {"type": "array", "items": item}})
    found = _check(checked, {"x": ["ab" * 50_000] * 800})
    assert len(found) == 1
    assert "running out of cost budget, no further validation rules will be run" in found[0]


def test_one_evaluation_has_a_limit_of_its_own() -> None:
    checked = _rules(
        properties={
            "x": {
                "type": "array",
                "items": {"type": "integer"},
                "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a != b + 1 || true))"}],
            }
        }
    )
    (found,) = _check(checked, {"x": list(range(2000))})
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in found
