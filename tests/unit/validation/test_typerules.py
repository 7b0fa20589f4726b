"""The notation of rules, and how a type applies them."""

import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from drachma.api import resourceclaim, types
from drachma.validation import fielderror, kindrules, rulecompiler, rulenotation, typerules
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, Path

SELECTOR = {"matchExpressions": [{"operator": "In", "key": "k", "values": ["v"]}]}


def check_both(value: dict[str, Any], at: Path) -> Iterator[FieldError]:
    if value.get("a") and value.get("b"):
        yield fielderror.forbidden(at.child("b"), "not with a")


def larger_than_fact(value: int, at: Path, least: int) -> Iterator[FieldError]:
    if value <= least:
        yield fielderror.invalid(at, value, f"must be greater than {least}")


def errors(line: str, value: dict[str, Any], facts: Any = None) -> list[str]:
    text = f"Item\n    name!\nType\n    {line}\n"
    return [str(error) for error in rulenotation.read(text, globals())["Type"](value, ROOT, facts)]


@pytest.mark.parametrize(
    ("line", "value", "want"),
    [
        pytest.param("a: x|y", {"a": ""}, [], id="optional-empty"),
        pytest.param("a: x|y", {"a": "z"}, ['a: Unsupported value: "z": supported values: "x", "y"'], id="enum"),
        pytest.param("a?: x|", {"a": ""}, ['a: Unsupported value: "": supported values: "x"'], id="present-empty"),
        pytest.param("a?: x|", {}, [], id="present-absent"),
        pytest.param("a!: x|", {"a": ""}, ["a: Required value"], id="required"),
        pytest.param('a!"say why": x|', {}, ["a: Required value: say why"], id="required-with-detail"),
        pytest.param("a!?: Item", {"a": {}}, ["a.name: Required value"], id="required-present"),
        pytest.param("a!?: Item", {}, ["a: Required value"], id="required-absent"),
        pytest.param("a=0: >0", {}, ["a: Invalid value: 0: must be greater than zero"], id="always-with-a-default"),
        pytest.param("a: >=1 <=3", {"a": 4}, ["a: Invalid value: 4: must be less than or equal to 3"], id="bounds"),
        pytest.param('a: 1..3 "one to three"', {"a": 4}, ["a: Invalid value: 4: one to three"], id="range-message"),
        pytest.param("a: max=2", {"a": "abc"}, ["a: Too long: may not be more than 2 bytes"], id="length"),
        pytest.param("a: items=1", {"a": [1, 2]}, ["a: Too many: 2: must have at most 1 item"], id="items"),
        pytest.param("a: text(x|y)", {"a": "z"}, ['a: Unsupported value: "z": supported values: "x", "y"'], id="texts"),
        pytest.param("a->b: max=1", {"a": "xx"}, ["b: Too long: may not be more than 1 byte"], id="another-name"),
        pytest.param("a b: >0", {"b": -1}, ["b: Invalid value: -1: must be greater than zero"], id="several-fields"),
        pytest.param("a: [Item]", {"a": [{}, {"name": "x"}]}, ["a[0].name: Required value"], id="list"),
        pytest.param(
            "a: [Item unique name]",
            {"a": [{"name": "x"}, {"name": "x"}]},
            ['a[1].name: Duplicate value: "x"'],
            id="unique",
        ),
        pytest.param(
            "a: [Item limit 1]", {"a": [{}, {}]}, ["a: Too many: 2: must have at most 1 item"], id="limit-of-a-list"
        ),
        pytest.param(
            "a: port",
            {"a": 70000},
            ["a: Invalid value: 70000: must be between 1 and 65535, inclusive"],
            id="constraint",
        ),
        pytest.param("a: selectors.check", {"a": SELECTOR}, [], id="function-of-another-module"),
        pytest.param("@check_both", {"a": 1, "b": 1}, ["b: Forbidden: not with a"], id="code"),
    ],
)
def test_rules(line: str, value: dict[str, Any], want: list[str]) -> None:
    assert errors(line, value) == want


def is_small(value: dict[str, Any]) -> bool:
    return bool(value.get("a", 0) < 3)


def show_in_brackets(value: Any) -> str:
    return f"<{value}>"


UNION = """
    union "none" "several"
        a?: Item
        b?: <=3
"""
CHOICE = """
    if a = x
        b!
    elif a = y|z and not c?
        b: forbidden "not with y"
    else
        b: invalid "not here"
"""


@pytest.mark.parametrize(
    ("lines", "value", "want"),
    [
        pytest.param(CHOICE, {"a": "x"}, ["b: Required value"], id="if"),
        pytest.param(CHOICE, {"a": "z", "b": 1}, ["b: Forbidden: not with y"], id="elif"),
        pytest.param(CHOICE, {"a": "z", "b": 1, "c": ""}, ["b: Invalid value: 1: not here"], id="else-by-presence"),
        pytest.param(CHOICE, {"b": "t"}, ['b: Invalid value: "t": not here'], id="else"),
        pytest.param('    a=: required "why"', {"a": "x"}, ["a: Required value: why"], id="required-with-a-value"),
        pytest.param('    a: invalid(null) "bad"', {"a": 1}, ["a: Invalid value: null: bad"], id="shown-as-null"),
        pytest.param('    a: invalid(empty) "bad"', {"a": 1}, ['a: Invalid value: "": bad'], id="shown-as-empty"),
        pytest.param('    a: invalid(enum) "bad"', {"a": "x"}, ['a: Invalid value: "x": bad'], id="shown-as-enum"),
        pytest.param(
            '    a: invalid(show_in_brackets) "bad"', {"a": 1}, ['a: Invalid value: "<1>": bad'], id="shown-by-function"
        ),
        pytest.param('    a: forbidden "x if y" if b', {"a": 1, "b": 1}, ["a: Forbidden: x if y"], id="suffix"),
        pytest.param('    a: forbidden "x if y" if b', {"a": 1}, [], id="suffix-that-does-not-hold"),
        pytest.param('    .: required "one" if a < .b', {"b": 1}, [": Required value: one"], id="value-itself"),
        pytest.param('    a: forbidden "x" if b.c > 2', {"a": 1, "b": {"c": 3}}, ["a: Forbidden: x"], id="field-below"),
        pytest.param('    b.c: forbidden "x" if b.c', {"b": {"c": 3}}, ["b.c: Forbidden: x"], id="rule-for-below"),
        pytest.param('    a: forbidden "x" if b = false', {"a": 1, "b": False}, ["a: Forbidden: x"], id="boolean"),
        pytest.param('    a: forbidden "x" if b = false', {"a": 1}, [], id="absent-is-not-false"),
        pytest.param("    a: forbidden 'x' if b != ''", {"a": 1}, [], id="not-empty"),
        pytest.param('    a: forbidden "x" if @is_small', {"a": 2}, ["a: Forbidden: x"], id="function"),
        pytest.param('    a: forbidden "x" if @is_small', {"a": 3}, [], id="function-that-says-no"),
        pytest.param('    a: forbidden "x" if (b or c) and a = 1', {"a": 1, "c": 1}, ["a: Forbidden: x"], id="or"),
        pytest.param(
            "    a: [Item unique .name]", {"a": [{"name": "x"}] * 2}, ['a[1]: Duplicate value: "x"'], id="item"
        ),
        pytest.param(UNION, {}, [": Required value: none"], id="union-of-none"),
        pytest.param(UNION, {"b": 7}, ["b: Invalid value: 7: must be less than or equal to 3"], id="union-of-one"),
        pytest.param(UNION, {"a": {"name": "x"}, "b": 7}, ["b: Forbidden: several"], id="union-of-several"),
        pytest.param(
            "    a: [max=9 here]", {"a": ["x" * 10]}, ["a: Too long: may not be more than 9 bytes"], id="here"
        ),
        pytest.param(
            "    a: [Item unique name first]",
            {"a": [{"name": ""}, {"name": ""}]},
            ["a[0].name: Required value", 'a[1].name: Duplicate value: ""', "a[1].name: Required value"],
            id="first",
        ),
        pytest.param(
            "    a: [Item key name]",
            {"a": [{"name": ""}, {"name": ""}]},
            ["a[0].name: Required value", "a[1].name: Required value", 'a[1]: Duplicate value: ""'],
            id="key",
        ),
        pytest.param("    a->.!", {}, [": Required value"], id="at-the-value"),
        pytest.param('    a: forbidden "x" if a# > 1', {"a": [1, 2]}, ["a: Forbidden: x"], id="length"),
        pytest.param("    a: [max=9 unique itself]", {"a": ["x", "x"]}, ['a[1]: Duplicate value: "x"'], id="itself"),
    ],
)
def test_conditions(lines: str, value: dict[str, Any], want: list[str]) -> None:
    types = rulenotation.read(f"Item\n    name!\nType\n{lines.strip(chr(10))}\n", globals())
    assert [str(error) for error in types["Type"](value, ROOT)] == want


def test_structs_have_the_rules_of_documents() -> None:
    text = "Consumer\n    resource!\n    ~apiGroup!\n    name: forbidden 'x' if uid = u\n"
    consumer = resourceclaim.ResourceClaimConsumerReference(name="n", uid="u")
    problems = rulenotation.read_as(typerules.StructType, text, globals())["Consumer"](consumer, ROOT)
    assert [(str(error), error.covered) for error in problems] == [
        ("resource: Required value", False),
        ("apiGroup: Required value", True),
        ("name: Forbidden: x", False),
    ]


def test_conditions_read_facts() -> None:
    types = rulenotation.read('Type\n    a: forbidden "x" if facts.name = b\n', globals())
    assert [str(error) for error in types["Type"]({"a": 1}, ROOT, {"name": "b"})] == ["a: Forbidden: x"]
    assert not types["Type"]({"a": 1}, ROOT, {"name": "c"})


@pytest.mark.parametrize(
    ("line", "value", "old", "want"),
    [
        pytest.param("a: immutable", {"a": 2}, {"a": 1}, ["a: Invalid value: 2: field is immutable"], id="immutable"),
        pytest.param("a: immutable", {"a": 1}, {"a": 1}, [], id="the-same"),
        pytest.param("a: immutable", {"a": ""}, {}, [], id="empty-is-absent"),
        pytest.param("a?: immutable", {"a": ""}, {}, ['a: Invalid value: "": field is immutable'], id="empty"),
        pytest.param("a: immutable(null)", {}, {"a": 1}, ["a: Invalid value: null: field is immutable"], id="removed"),
        pytest.param('a b: immutable "stays"', {"b": 1}, {"b": 2}, ["b: Invalid value: 1: stays"], id="several"),
        pytest.param(
            "a.b: immutable",
            {"a": {"b": 1}},
            {"a": {}},
            ["a.b: Invalid value: 1: field is immutable"],
            id="field-below",
        ),
        pytest.param('a: forbidden "x" if a changed', {"a": 2}, {"a": 1}, ["a: Forbidden: x"], id="changed"),
        pytest.param('a: forbidden "x" if a changed', {"a": 1}, {"a": 1}, [], id="not-changed"),
        pytest.param('a: forbidden "x" if a < facts.a', {"a": 1}, {"a": 2}, ["a: Forbidden: x"], id="less-than-before"),
        pytest.param('a: forbidden "x" if facts.b.c', {"a": 1}, {"b": {"c": 1}}, ["a: Forbidden: x"], id="fact-below"),
        pytest.param('a: forbidden "x" if not facts', {"a": 1}, None, ["a: Forbidden: x"], id="no-facts"),
        pytest.param("a<: Part", {"a": {"b": 2}}, {"a": {"b": 1}}, ["a.b: Forbidden: changed"], id="old-value-below"),
        pytest.param("a<: Part", {"a": {"b": 2}}, None, ["a.b: Forbidden: changed"], id="no-old-value-below"),
    ],
)
def test_rules_of_updates(line: str, value: dict[str, Any], old: dict[str, Any] | None, want: list[str]) -> None:
    text = f'Type\n    {line}\nPart\n    b: forbidden "changed" if b changed\n'
    assert [str(error) for error in rulenotation.read(text, globals())["Type"](value, ROOT, old)] == want


def test_kinds_have_the_rules_of_their_writes() -> None:
    rules = kindrules.read(rulenotation.read("Kind\n    a!\nKind.update\n    b: immutable\n", globals()))["Kind"]
    assert [str(error) for error in rules.always({})] == ["a: Required value"]
    assert [str(error) for error in rules.update({"b": 1}, ROOT, {})] == ["b: Invalid value: 1: field is immutable"]
    assert not rules.create({})
    assert not rules.status({})


def test_facts_reach_the_rules_that_take_them() -> None:
    assert errors("a: larger_than_fact", {"a": 3}, facts=3) == ["a: Invalid value: 3: must be greater than 3"]
    assert errors("a: larger_than_fact", {"a": 4}, facts=3) == []


def test_errors_are_in_the_order_of_the_rules() -> None:
    text = "Type\n    b!\n    @check_both\n    a: >0\n    c!\n"
    ordered = rulenotation.read(text, globals())["Type"]({"a": -1, "b": 1}, ROOT)
    assert [error.field for error in ordered] == ["b", "a", "c"]


@pytest.mark.parametrize(
    "line", ["a: no_such_rule", "@no_such_rule", "a: [Missing]", "a ! b", "else", "a: port if b ="]
)
def test_a_bad_rule_is_refused_when_it_is_read(line: str) -> None:
    with pytest.raises(ValueError, match=r"no rule is called|not a rule|not a condition"):
        errors(line, {})


RULES = pathlib.Path(typerules.__file__).parent
GROUPS = {
    "apps": ("apps/v1", "core/v1"),
    "autoscaling": ("autoscaling/v2",),
    "batch": ("batch/v1",),
    "certificatesigningrequest": ("certificates.k8s.io/v1",),
    "customresourcedefinition": ("apiextensions.k8s.io/v1",),
    "declared": ("resource.k8s.io/v1", "core/v1"),
    "device": ("resource.k8s.io/v1",),
    "deviceclaim": ("resource.k8s.io/v1",),
    "endpoints": ("core/v1", "discovery.k8s.io/v1"),
    "flowcontrol": ("flowcontrol.apiserver.k8s.io/v1",),
    "networking": ("networking.k8s.io/v1", "core/v1"),
    "admissionregistration/matching": ("admissionregistration.k8s.io/v1",),
    "admissionregistration/policies": ("admissionregistration.k8s.io/v1",),
    "node": ("core/v1", "node.k8s.io/v1"),
    "poddisruptionbudget": ("policy/v1",),
    "scheduling": ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1"),
    "rbac": ("rbac.authorization.k8s.io/v1",),
    "resourcepoolstatusrequest": ("resource.k8s.io/v1alpha3",),
    "resourceclaim": ("resource.k8s.io/v1",),
    "resourceslice": ("resource.k8s.io/v1",),
    "storage": ("storage.k8s.io/v1", "core/v1"),
    "taints": ("resource.k8s.io/v1",),
}
"""Groups and versions of the types in a file of rules, where these are not in the core group."""


OWN_FIELDS = {"NodeAllocatableResourceClaimStatus": ("resources",)}
"""Fields of KEP-5517's own spelling in the status of pods, which upstream's schema does not have."""


class AnyName(rulenotation.Names):
    """Names of which every one exists."""

    def __init__(self) -> None:
        super().__init__({}, {}, lambda token, find: check_both)

    def find(self, name: str) -> rulecompiler.Rule:
        return check_both


@pytest.mark.parametrize("path", sorted(RULES.rglob("*.rules")), ids=lambda path: path.stem)
def test_rules_name_fields_that_their_types_have(path: pathlib.Path) -> None:
    types_with_lines: dict[str, list[str]] = {}
    title = ""
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            types_with_lines[title].append(line)
        elif line and not line.startswith("#"):
            title = line
            types_with_lines[title] = []
    for full_title, lines in types_with_lines.items():
        title = full_title.partition(".")[0]
        name = path.relative_to(RULES).with_suffix("").as_posix()
        fields = next(filter(None, (_fields(place, title) for place in GROUPS.get(name, ("core/v1",)))), None)
        if fields is not None:
            names = set(_names(rulenotation.read_block(lines, AnyName())))
            assert names <= {*fields, *OWN_FIELDS.get(title, ())}, title


def _names(steps: Iterable[rulecompiler.AnyStep]) -> Iterator[str]:
    """Yield the fields that rules and their conditions name."""
    for step in steps:
        if isinstance(step, rulecompiler.Step):
            yield from [step.name.partition(".")[0]] if step.name else []
            continue
        if isinstance(step, rulecompiler.Union):
            yield from _names(step.members)
            continue
        for condition, own in step.branches:
            yield from _names(own)
            for part in condition:
                if isinstance(part, rulecompiler.Comparison):
                    names = (name.partition(".")[0] for name in (part.name, part.other))
                    yield from (name for name in names if name and name != "facts")


def _fields(place: str, name: str) -> Any:
    try:
        return types.get(f"{place}.{name}").fields
    except KeyError:
        return None
