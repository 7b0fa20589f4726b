"""The machine that an agent registers, with the taints of a new node."""

import pathlib

import pytest

from drachma import errors
from drachma.node.registration import machine


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", (), id="none"),
        pytest.param("a=b:NoSchedule", ({"key": "a", "value": "b", "effect": "NoSchedule"},), id="with-a-value"),
        pytest.param(
            "a:NoExecute,b/c:PreferNoSchedule",
            ({"key": "a", "effect": "NoExecute"}, {"key": "b/c", "effect": "PreferNoSchedule"}),
            id="several",
        ),
    ],
)
def test_taints(text: str, want: tuple[dict[str, str], ...], tmp_path: pathlib.Path) -> None:
    taints = machine.parse_taints(text)
    assert taints == want
    document = machine.describe_local("n", root=tmp_path, taints=taints).node
    assert tuple(document.get("spec", {}).get("taints", ())) == want


@pytest.mark.parametrize("text", ["a", "a:Never", ":NoSchedule", "=b:NoSchedule"])
def test_malformed_taints(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=r"expected KEY\[=VALUE\]:EFFECT"):
        machine.parse_taints(text)
