"""Nodes: taints, amounts, networks."""

from typing import Any

import pytest

from drachma.validation import node


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(
            {"spec": {"taints": [{"key": "a b", "effect": "Bogus"}]}},
            [
                (
                    'metadata.taints[0].key: Invalid value: "a b": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'metadata.taints[0].effect: Unsupported value: "Bogus": supported values: "NoSchedule", '
                    '"PreferNoSchedule", "NoExecute"'
                ),
            ],
            id="metadata-taints-0-key-invalid-value",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "", "effect": ""}]}},
            [
                'metadata.taints[0].key: Invalid value: "": name part must be non-empty',
                (
                    'metadata.taints[0].key: Invalid value: "": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                "metadata.taints[0].effect: Required value",
            ],
            id="metadata-taints-0-key-invalid-value-2",
        ),
        pytest.param(
            {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}},
            [
                (
                    'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one '
                    "CIDR for each IP family"
                )
            ],
            id="pod-cidrs-invalid-value",
        ),
    ],
)
def test_refused(content: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in node.KINDS["Node"].create(content)]
    assert found == want
