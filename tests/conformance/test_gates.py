"""Feature gates of Kubernetes 1.37: docs/gates.md says of each how drachma differs, or why it does not have it."""

import json
import pathlib
import re
from typing import Any

import pytest

from drachma.api import gates
from tests.conformance import vectors

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "gates.md"
_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


RECORDING = vectors.folder() / "gates.json"
RECORDED: dict[str, dict[str, Any]] = json.loads(RECORDING.read_text())["gates"] if RECORDING.is_file() else {}
NAMES: list[Any] = sorted(RECORDED) or [pytest.param("", marks=pytest.mark.skip(reason=vectors.required(RECORDING)))]
HAD, _, ABSENT = _PAGE.read_text().partition("## Gates that drachma does not have")
ROWS = {name: (upstream, own) for name, upstream, own in _ROW.findall(HAD)}
REASONS = {
    name: section.partition("\n")[2].strip().splitlines()[0]
    for section in ABSENT.split("\n### ")[1:]
    for name in _NAME.findall("\n".join(section.strip().splitlines()[3:]))
}


def _as_recorded(gate: dict[str, Any]) -> str:
    stage = gate["stage"] if gate["stage"] == "GA" else gate["stage"].lower()
    locked = ", locked" if gate["lockToDefault"] else ""
    return f"{stage}, {'on' if gate['default'] else 'off'}{locked}"


def test_the_page_has_every_gate_of_drachma() -> None:
    assert {name: own for name, (_, own) in ROWS.items()} == {
        each: "on" if gates.ALL.on(each) else "off" for each in gates.Gate
    }


def test_no_gate_of_drachma_is_said_to_be_absent() -> None:
    assert not REASONS.keys() & set(gates.Gate)


@pytest.mark.parametrize("name", NAMES)
def test_gates_of_kubernetes_are_there_or_have_a_reason(name: str) -> None:
    if name in ROWS:
        assert ROWS[name][0] == _as_recorded(RECORDED[name])
    else:
        assert REASONS.get(name, ""), f"{name}: neither a gate of drachma, nor a reason in docs/gates.md"


@pytest.mark.parametrize("name", sorted(ROWS))
def test_gates_of_our_own_are_off(name: str) -> None:
    upstream, own = ROWS[name]
    if upstream == "-":
        assert own == "off", "answers of Kubernetes 1.37 are the default"
        assert gates.Gate(name) in gates.OWN
    elif RECORDED:
        assert name in RECORDED
