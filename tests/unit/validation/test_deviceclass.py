"""DeviceClass: new classes, and what an update leaves unchecked."""

from typing import Any

import pytest

from drachma.api import gates
from drachma.validation import writes
from tests.unit.validation import builders
from tests.unit.validation.builders import CLASS, Document, changed, create, setting, stored, update


def config(parameters: Any = None, driver: str = "dra.example.com") -> list[Document]:
    return [{"opaque": {"driver": driver, "parameters": parameters or {"a": 1}}}]


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(
            "metadata.namespace", "x", "metadata.namespace: Forbidden: not allowed on this type", id="namespace"
        ),
        pytest.param(
            "metadata.name",
            "a" * 254,
            f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 bytes',
            id="name-in-declared-words",
        ),
        pytest.param(
            "spec.selectors",
            [{"cel": {"expression": "true"}}] * 33,
            "spec.selectors: Too many: 33: must have at most 32 items",
            id="too-many-selectors",
        ),
        pytest.param(
            "spec.config", config() * 33, "spec.config: Too many: 33: must have at most 32 items", id="too-many-configs"
        ),
        pytest.param(
            "spec.extendedResourceName",
            "gpu",
            'spec.extendedResourceName: Invalid value: "gpu": a name must be a domain-prefixed path, such as '
            "'example.com/my-prop'",
            id="extended-resource-without-domain",
        ),
        pytest.param(
            "spec.extendedResourceName",
            "kubernetes.io/gpu",
            'spec.extendedResourceName: Invalid value: "kubernetes.io/gpu": must not have "kubernetes.io/" domain',
            id="extended-resource-of-kubernetes",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    (found,) = create(changed(CLASS, setting(path, value)))
    assert found == want


def test_stored_selectors_are_not_compiled_again() -> None:
    old = changed(stored(CLASS), setting("spec.selectors", [{"cel": {"expression": "no longer cel"}}]))
    assert update(changed(old, setting("spec.config", config())), old) == []
    reordered = changed(old, lambda document: document["spec"]["selectors"].append({"cel": {"expression": "true"}}))
    (found,) = update(reordered, old)
    assert found == (
        'spec.selectors[0].cel.expression: Invalid value: "no longer cel": compilation failed: ERROR: <input>:1:4: '
        "Syntax error: mismatched input 'longer' expecting <EOF>\n | no longer cel\n | ...^"
    )


def test_stored_parameters_may_be_too_long() -> None:
    old = changed(stored(CLASS), setting("spec.config", config({"a": "x" * 11000})))
    assert update(changed(old, setting("metadata.labels", {"a": "b"})), old) == []
    (found,) = update(changed(old, setting("spec.config", config({"a": "y" * 11000}))), old)
    assert found == "spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"


def test_unchanged_long_lists_are_refused_by_hand_but_not_by_declared_rules() -> None:
    old = changed(stored(CLASS), setting("spec.selectors", [{"cel": {"expression": "true"}}] * 33))
    found = update(changed(old, setting("metadata.labels", {"a": "b"})), old)
    assert found == ["spec.selectors: Too many: 33: must have at most 32 items"]


def test_extended_resource_name_is_dropped_where_off_and_kept_where_used() -> None:
    off = gates.ALL.switched({"DRAExtendedResource": False})
    named = changed(stored(CLASS), setting("spec.extendedResourceName", "example.com/gpu"))
    context = builders.context(gates=off)
    created = writes.create(builders.read(named), context).object
    assert created.spec.extended_resource_name is None
    kept = writes.update(builders.read(named), builders.read(named), context).object
    assert kept.spec.extended_resource_name == "example.com/gpu"
