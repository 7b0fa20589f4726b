"""What a table says about a pod: how many containers are ready, one word for its state, how often it restarted.

The word is found as kubectl users know it: the reason of the container that tells most, init containers first.

Public: ``summarize(pod, *, now) -> Summary``, ``readiness_gates(pod)``.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

from drachma.server.surface import age

_NODE_LOST: Final = "NodeLost"
_GATED: Final = "SchedulingGated"


class Summary(NamedTuple):
    """The cells of a pod that are not simply copied."""

    ready: str
    reason: str
    restarts: str


class _Restarts:
    """How many restarts there were, and when the last one ended."""

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
    """A pod while it is being summarised: first its init containers are looked at, then the others."""

    def __init__(self, pod: dict[str, Any]) -> None:
        self.spec, self.status = pod.get("spec") or {}, pod.get("status") or {}
        self.metadata = pod.get("metadata") or {}
        self.conditions = self.status.get("conditions") or []
        self.ready = 0
        self.reason = self.status.get("reason") or self.status.get("phase", "")
        if any(each.get("type") == "PodScheduled" and each.get("reason") == _GATED for each in self.conditions):
            self.reason = _GATED
        self.sidecars = {
            each.get("name") for each in self.spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"
        }

    def is_true(self, condition_type: str) -> bool:
        found: dict[str, Any] = next((each for each in self.conditions if each.get("type") == condition_type), {})
        return bool(found.get("status") == "True")

    def read_init_containers(self, all_restarts: _Restarts, sidecar_restarts: _Restarts) -> bool:
        """Whether the pod is still initialising; the first container that is not done says how far it is."""
        for place, container in enumerate(self.status.get("initContainerStatuses") or []):
            is_sidecar = container.get("name") in self.sidecars
            all_restarts.add(container)
            if is_sidecar:
                sidecar_restarts.add(container)
            state = container.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting") or {}
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if is_sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.reason = f"Init:{_how_it_ended(terminated)}"
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{place}/{len(self.spec.get('initContainers') or [])}"
            return True
        return False

    def read_containers(self, restarts: _Restarts) -> None:
        is_running, error = False, ""
        for container in reversed(self.status.get("containerStatuses") or []):
            restarts.add(container)
            state = container.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting") or {}
            if waiting.get("reason"):
                self.reason = waiting["reason"]
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
    """The summary of a pod document."""
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
    """How many of the pod's readiness gates are open, or that it has none."""
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
