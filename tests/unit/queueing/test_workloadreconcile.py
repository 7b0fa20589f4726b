"""One look at a workload: what its surroundings make of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.queueing import gates, workloadreconcile, workloadstep
from drachma.queueing.gates import Gate
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.settings import Settings

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_ORCHESTRATED = Settings(gates=gates.DEFAULT.switched({Gate.ORCHESTRATED_PREEMPTION: True}))


def _workload(gate_names: list[str], states: dict[str, str]) -> workload.Workload:
    document: dict[str, Any] = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podSets": [], "preemptionGates": [{"name": name} for name in gate_names]},
        "status": {"preemptionGates": [{"name": name, "position": at} for name, at in states.items()]},
    }
    return decoding.decode(document, workload.Workload)


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(_ORCHESTRATED, [("open", "Open"), ("new", "Closed")], id="gate-on"),
        pytest.param(Settings(), [("open", "Open"), ("gone", "Closed")], id="gate-off"),
    ],
)
def test_states_of_preemption_gates_follow_the_spec(settings: Settings, want: list[tuple[str, str]]) -> None:
    before = _workload(["open", "new"], {"open": "Open", "gone": "Closed"})

    after = workloadreconcile.reconcile(before, workloadstep.Neighbourhood(), _NOW, settings=settings).workload

    assert after is not None
    assert [(each.name, each.position) for each in after.status.preemption_gates] == want
