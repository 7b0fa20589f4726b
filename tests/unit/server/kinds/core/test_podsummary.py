"""Reason, ready containers and restarts of pods in tables."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.server.kinds.core import podsummary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _container(name: str = "a", *, ready: bool = False, restarts: int = 0, **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


def _pod(phase: str, *containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {},
        "spec": {"containers": [{"name": each["name"]} for each in containers] or [{"name": "a"}]},
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }


def _with_init(pod: dict[str, Any], status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pod["spec"]["initContainers"] = [{"name": status["name"], **spec}]
    pod["status"]["initContainerStatuses"] = [status]
    return pod


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(_pod("Pending"), ("0/1", "Pending", "0"), id="pending"),
        pytest.param(_pod("Failed", reason="Evicted"), ("0/1", "Evicted", "0"), id="reason-of-the-pod"),
        pytest.param(
            _pod("Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            ("0/1", "SchedulingGated", "0"),
            id="gated",
        ),
        pytest.param(_pod("Running", _container(ready=True, running={})), ("1/1", "Running", "0"), id="running"),
        pytest.param(
            _pod("Running", _container(waiting={"reason": "CrashLoopBackOff"}, restarts=3)),
            ("0/1", "CrashLoopBackOff", "3"),
            id="waiting",
        ),
        pytest.param(
            _pod("Failed", _container(terminated={"exitCode": 2})), ("0/1", "ExitCode:2", "0"), id="exit-code"
        ),
        pytest.param(
            _pod("Failed", _container(terminated={"exitCode": 137, "signal": 9})), ("0/1", "Signal:9", "0"), id="signal"
        ),
        pytest.param(
            _pod(
                "Running",
                _container("a", terminated={"reason": "Completed"}),
                _container("b", ready=True, running={}),
                conditions=READY,
            ),
            ("1/2", "Running", "0"),
            id="one-completed-one-running",
        ),
        pytest.param(
            _pod(
                "Running", _container("a", terminated={"reason": "Completed"}), _container("b", ready=True, running={})
            ),
            ("1/2", "NotReady", "0"),
            id="one-completed-and-not-ready",
        ),
        pytest.param(
            _with_init(_pod("Pending"), _container("i", waiting={"reason": "PodInitializing"})),
            ("0/1", "Init:0/1", "0"),
            id="initialising",
        ),
        pytest.param(
            _with_init(_pod("Pending"), _container("i", terminated={"exitCode": 1, "reason": "Error"}, restarts=2)),
            ("0/1", "Init:Error", "2"),
            id="initialisation-failed",
        ),
        pytest.param(
            _with_init(
                _pod("Running", _container(ready=True, running={})),
                {**_container("i", ready=True, running={}, restarts=1), "started": True},
                restartPolicy="Always",
            ),
            ("2/2", "Running", "1"),
            id="sidecar-counts",
        ),
        pytest.param(
            {**_pod("Running"), "metadata": {"deletionTimestamp": "x"}}, ("0/1", "Terminating", "0"), id="deleted"
        ),
        pytest.param(
            {**_pod("Running", reason="NodeLost"), "metadata": {"deletionTimestamp": "x"}},
            ("0/1", "Unknown", "0"),
            id="node-lost",
        ),
        pytest.param(
            _pod(
                "Running",
                {
                    **_container(ready=True, running={}, restarts=4),
                    "lastState": {"terminated": {"finishedAt": "2025-12-31T23:50:00Z"}},
                },
            ),
            ("1/1", "Running", "4 (10m ago)"),
            id="restarted-ten-minutes-ago",
        ),
    ],
)
def test_summary(pod: dict[str, Any], want: tuple[str, str, str]) -> None:
    assert podsummary.summarize(pod, now=NOW) == want


def test_readiness_gates() -> None:
    pod = _pod("Running", conditions=[{"type": "a", "status": "True"}])
    assert podsummary.readiness_gates(pod) == "<none>"
    pod["spec"]["readinessGates"] = [{"conditionType": "a"}, {"conditionType": "b"}]
    assert podsummary.readiness_gates(pod) == "1/2"
