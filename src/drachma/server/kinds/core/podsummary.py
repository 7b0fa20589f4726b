"""Table cells of pods: ready containers, reason, and restarts.

The reason is the one that kubectl users know: that of the most telling container, init containers first.

Public: ``summarize(pod, *, now) -> Summary``, ``readiness_gates(pod)``.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

from drachma.claims import conditions
from drachma.server.surface import age

_NODE_LOST: Final = "NodeLost"
_GATED: Final = "SchedulingGated"


class Summary(NamedTuple):
    """Cells of a pod that are computed."""

    ready: str
    reason: str
    restarts: str


class _Restarts:
    """Number of restarts, and the time of the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.last: datetime | None = None

    def add(self, container: dict[str, Any]) -> None:
        self.count += container.get("restartCount", 0)
        ended = age.parse((container.get("lastState") or {}).get("terminated", {}).get("finishedAt"))
        if ended is not None and (self.last is None or self.last < ended):
            self.last = ended

    def text(self, now: datetime) -> str:
        if not self.count or self.last is None:
            return str(self.count)
        return f"{self.count} ({age.words((now - self.last).total_seconds())} ago)"


class _Reading:
    """State of summarising a pod: init containers first, then the others."""

    def __init__(self, pod: dict[str, Any]) -> None:
        self.spec, self.status = pod.get("spec") or {}, pod.get("status") or {}
        self.metadata = pod.get("metadata") or {}
        self.conditions = self.status.get("conditions") or []
        self.ready = 0
        self.reason = self.status.get("reason") or self.status.get("phase", "")
        scheduled = conditions.find_document(self.conditions, "PodScheduled")
        if scheduled is not None and scheduled.get("reason") == _GATED:
            self.reason = _GATED
        self.sidecars = {
            each.get("name") for each in self.spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"
        }

    def is_true(self, condition_type: str) -> bool:
        return conditions.has_true_document(self.conditions, condition_type)

    def read_init_containers(self, all_restarts: _Restarts, sidecar_restarts: _Restarts) -> bool:
        """Return True if the pod is still initialising; the first unfinished container sets the reason."""
        for place, container in enumerate(self.status.get("initContainerStatuses") or []):
            is_sidecar = container.get("name") in self.sidecars
            all_restarts.add(container)
            if is_sidecar:
                sidecar_restarts.add(container)
            state = container.get("state") or {}
            terminated, waiting_state = state.get("terminated"), state.get("waiting") or {}
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if is_sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.reason = f"Init:{_how_it_ended(terminated)}"
            elif waiting_state.get("reason") and waiting_state["reason"] != "PodInitializing":
                self.reason = f"Init:{waiting_state['reason']}"
            else:
                self.reason = f"Init:{place}/{len(self.spec.get('initContainers') or [])}"
            return True
        return False

    def read_containers(self, restarts: _Restarts) -> None:
        is_running, error = False, ""
        for container in reversed(self.status.get("containerStatuses") or []):
            restarts.add(container)
            state = container.get("state") or {}
            terminated, waiting_state = state.get("terminated"), state.get("waiting") or {}
            if waiting_state.get("reason"):
                self.reason = waiting_state["reason"]
            elif terminated is not None:
                self.reason = _how_it_ended(terminated)
                error = self.reason if terminated.get("exitCode", 0) else error
            elif container.get("ready") and state.get("running") is not None:
                is_running = True
                self.ready += 1
        if self.reason == "Completed":
            if is_running and self.is_true("Ready"):
                self.reason = "Running"
            elif error:
                self.reason = error
            elif is_running:
                self.reason = "NotReady"

    def read_deletion(self) -> None:
        if not self.metadata.get("deletionTimestamp"):
            return
        if self.status.get("reason") == _NODE_LOST:
            self.reason = "Unknown"
        elif self.status.get("phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"


def summarize(pod: dict[str, Any], *, now: datetime) -> Summary:
    """Return the summary of a pod document."""
    reading = _Reading(pod)
    restarts, sidecar_restarts = _Restarts(), _Restarts()
    is_initializing = reading.read_init_containers(restarts, sidecar_restarts)
    if not is_initializing or reading.is_true("Initialized"):
        restarts = sidecar_restarts
        reading.read_containers(restarts)
    reading.read_deletion()
    total = len(reading.spec.get("containers") or []) + len(reading.sidecars)
    return Summary(f"{reading.ready}/{total}", reading.reason, restarts.text(now))


def readiness_gates(pod: dict[str, Any]) -> str:
    """Return the cell with the number of true readiness gates."""
    reading = _Reading(pod)
    gates = reading.spec.get("readinessGates") or []
    if not gates:
        return "<none>"
    return f"{sum(reading.is_true(gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


def _how_it_ended(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"
