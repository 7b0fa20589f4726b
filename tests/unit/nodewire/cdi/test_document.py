"""Texts of CDI files: scalars by the type of their field, and what is refused."""

import pytest

from drachma import errors
from drachma.nodewire.cdi import document, spec

HEAD = "cdiVersion: 0.7.0\nkind: v.com/c\ndevices:\n- name: a\n  containerEdits: "


@pytest.mark.parametrize(
    ("text", "node"),
    [
        pytest.param("{path: /dev/a, fileMode: 0660}", spec.DeviceNode(path="/dev/a", file_mode=0o660), id="octal"),
        pytest.param("{path: /dev/a, fileMode: 0o660}", spec.DeviceNode(path="/dev/a", file_mode=0o660), id="octal-0o"),
        pytest.param("{path: /dev/a, major: 0xC3}", spec.DeviceNode(path="/dev/a", major=195), id="hexadecimal"),
        pytest.param("{path: /dev/a, major: 1_000}", spec.DeviceNode(path="/dev/a", major=1000), id="underscores"),
        pytest.param("{path: /dev/a, major: 3.9}", spec.DeviceNode(path="/dev/a", major=3), id="fraction"),
        pytest.param("{path: /dev/a, major: null, uid: ~}", spec.DeviceNode(path="/dev/a"), id="nulls"),
        pytest.param("{path: 12}", spec.DeviceNode(path="12"), id="number-as-text"),
    ],
)
def test_scalars(text: str, node: spec.DeviceNode) -> None:
    content = document.parse(f"{HEAD}{{deviceNodes: [{text}]}}".encode())
    assert content.devices[0].container_edits.device_nodes == (node,)


@pytest.mark.parametrize("text", ["y", "Yes", '"on"', "'ON'", "true"])
def test_booleans_of_yaml_1_1_may_be_quoted(text: str) -> None:
    content = document.parse(f"{HEAD}{{intelRdt: {{enableMonitoring: {text}}}}}".encode())
    assert content.devices[0].container_edits.intel_rdt == spec.IntelRdt(enable_monitoring=True)


def test_nulls_in_lists_and_as_keys_are_left_out() -> None:
    text = f"{HEAD}{{env: [A=1, null, B=2], ~: []}}\n- null\nannotations: {{null: a}}\n"
    content = document.parse(text.encode())
    assert [device.container_edits.env for device in content.devices] == [("A=1", "B=2")]
    assert not content.annotations


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(b"", "no Spec data", id="empty"),
        pytest.param(b"null", "no Spec data", id="null"),
        pytest.param(b"\xff\xfe\xfd", "yaml", id="not-a-text"),
        pytest.param(b"kind: [a", "yaml", id="open-list"),
        pytest.param(b"kind: a\nkind: b", "line 2: field kind is there twice", id="twice"),
        pytest.param(b"kind: a\nfoo: b", "line 2: field foo does not exist", id="unknown"),
        pytest.param(b"devices: {}", "line 1: is not a list", id="no-list"),
        pytest.param(b"kind: [a]", "line 1: is not a plain value", id="no-scalar"),
        pytest.param(HEAD.encode() + b"{additionalGids: [-1]}", "additionalGids", id="below-zero"),
        pytest.param(HEAD.encode() + b"{additionalGids: ['1']}", "'1' is not a number", id="quoted-number"),
        pytest.param(HEAD.encode() + b"{intelRdt: {enableMonitoring: maybe}}", "'maybe' is not a bool", id="bool"),
        pytest.param(HEAD.encode() + b"{mounts: [null]}", "is not a mapping", id="null-pointer"),
        pytest.param(b"&a [*a]", "is not a mapping", id="list-in-itself"),
        pytest.param(b"[" * 100_000, "nested deeper than 200 levels", id="deep"),
    ],
)
def test_refused(text: bytes, problem: str) -> None:
    with pytest.raises(errors.DecodeError, match=problem):
        document.parse(text)
