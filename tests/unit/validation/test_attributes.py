"""Attributes of devices: names, values, how many."""

from typing import Any

import pytest

from tests.unit.validation.builders import SLICE, Document, changed, create, setting

DEVICE = "spec.devices.0"
AT = "spec.devices[0]"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(changed(SLICE, setting(f"{DEVICE}.attributes", {"a/b/c": {"int": 1}})), id="two-slashes-pass"),
    ],
)
def test_good(document: Document) -> None:
    assert create(document) == []


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param(
            f"{DEVICE}.attributes",
            {f"a{i}": {"int": 1} for i in range(32)},
            f"{AT}: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
            id="too-many-attributes",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a": {"ints": list(range(49))}},
            f"{AT}: Invalid value: 49: the total number of attribute values must not exceed 48",
            id="too-many-attribute-values",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"/a": {"int": 1}},
            f'{AT}.attributes: Invalid value: "": the domain must not be empty',
            id="attribute-domain-empty",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a/": {"int": 1}},
            f'{AT}.attributes: Invalid value: "": the name must not be empty',
            id="attribute-name-empty",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a" * 33: {"int": 1}},
            f"{AT}.attributes: Too long: may not be more than 32 bytes",
            id="attribute-name-long",
        ),
        pytest.param(
            f"{DEVICE}.attributes",
            {"a": {}},
            f'{AT}.attributes[a]: Invalid value: "": must specify one of: `int`, `bool`, `string`, '
            "`version`, `ints`, `bools`, `strings`, `versions`",
            id="attribute-without-value",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"int": 1, "string": "x"},
            f'{AT}.attributes[model]: Invalid value: "{{int, string}}": must specify exactly one of: `int`, `bool`, '
            "`string`, `version`, `ints`, `bools`, `strings`, `versions`",
            id="attribute-with-two-values",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"string": "é" * 33},
            f"{AT}.attributes[model].string: Too long: may not be more than 64 bytes",
            id="attribute-text-long",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"version": "1.2"},
            f'{AT}.attributes[model].version: Invalid value: "1.2": must be a string compatible with semver.org spec '
            "2.0.0",
            id="attribute-version",
        ),
        pytest.param(
            f"{DEVICE}.attributes.model",
            {"versions": ["1.2.3", "01.2.3"]},
            f'{AT}.attributes[model].versions[1]: Invalid value: "01.2.3": must be a string compatible with '
            "semver.org spec 2.0.0",
            id="attribute-versions",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(SLICE, setting(path, value))) == [want]


def test_long_keys_are_shortened_in_hand_written_paths_only() -> None:
    key = "x" * 120
    found = create(changed(SLICE, setting(f"{DEVICE}.attributes", {key: {}})))
    shortened = "x" * 47 + "..." + "x" * 46
    assert [error.partition(": ")[0] for error in found] == [
        f"{AT}.attributes",
        f"{AT}.attributes[{shortened}]",
        f"{AT}.attributes[{key}]",
    ]
