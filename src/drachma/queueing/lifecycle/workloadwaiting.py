"""Rules for workloads without quota: devices, gates, queues, and the result of the last cycle."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.api import labelselectors
from drachma.queueing import conditions
from drachma.queueing.admission.feasibility import PLACEMENT_FAILED
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import NamedClaims
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.kinds import workload
from drachma.queueing.lifecycle.workloadstep import Outcome, WorkloadStep, is_stopped
from drachma.queueing.workloads import admissibility, transitions, workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL

_GATED: Final = "AdmissionGated"
_INADMISSIBLE: Final = frozenset({"Inadmissible", "Misconfigured"})
_DISABLED: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
_SCHEDULER_REASONS: Final = frozenset(
    {
        "NoMatchingFlavor",
        "WaitingForQuota",
        "ExceedsMaxQuota",
        "TopologyPlacementFailed",
        "WaitingForPreemptedWorkloads",
        "WaitingForPodsReady",
        PLACEMENT_FAILED,
    }
)
"""Reasons that only an admission cycle gives; they stay until the next one."""


def has_gate(wl: workload.Workload, gates: Gates) -> bool:
    """Return True if an admission gate is closed."""
    return gates.on(Gate.ADMISSION_GATED_BY) and bool(wl.metadata.annotations.get(workload.ADMISSION_GATES))


class WaitingStep(WorkloadStep):
    """The rules for workloads without quota."""

    def _refuse_uncounted_devices(self) -> Outcome | None:
        """Refuse a workload with claims while devices are not counted."""
        refuses = not self._gates.on(Gate.DRA) and self._gates.on(Gate.DRA_REJECT_WHEN_DISABLED)
        if not (self._is_pending and refuses and devicerequests.has_claims(self._workload)):
            return None
        return self._refused(self._misconfigured(_DISABLED))

    def _misconfigured(self, message: str, requeued: str = "") -> workload.Workload:
        """Keep a workload out of its queue until something changes."""
        reason = self._reason("Misconfigured", "Inadmissible")
        after = transitions.unreserve(self._workload, reason=reason, message=message, now=self._now, gates=self._gates)
        if after is self._workload:
            return after
        return transitions.requeued(after, "False", reason="Inadmissible", message=requeued or message)

    def _count_devices(self) -> Outcome | None:
        around = self._around
        if (
            not self._is_pending
            or workloadstate.is_on_hold(self._workload)
            or not self._gates.on(Gate.DRA)
            or not devicerequests.are_needed(self._workload, around.objects, gates=self._gates)
        ):
            return None
        is_shared = self._policy.named_claims is NamedClaims.SHARED
        if not is_shared and devicerequests.names_claims(self._workload):
            return self._refused(self._misconfigured(_BY_NAME, "DRA resource claims not supported"))
        requests = devicerequests.count(
            self._workload,
            around.objects,
            around.mappings,
            gates=self._gates,
            policy=self._policy,
            claims=around.claims if is_shared else None,
        )
        if isinstance(requests, devicerequests.Refusal):
            error = requests.message if requests.is_retried else ""
            return self._refused(self._misconfigured(requests.message), error)
        self._devices = requests
        stale = [
            kind for kind in (conditions.QUOTA_RESERVED, conditions.REQUEUED) if _is_inadmissible(self._workload, kind)
        ]
        self._workload = transitions.drop(self._workload, stale)
        return None

    def _stopped_by(self, reason: str) -> bool:
        requeued = conditions.find(self._workload.status.conditions, conditions.REQUEUED)
        return requeued is not None and requeued.status == "False" and requeued.reason == reason

    def _local_queue_restarted(self) -> Outcome | None:
        queue = self._around.local_queue
        if queue is None or is_stopped(queue.spec.stop_policy) or not self._stopped_by("LocalQueueStopped"):
            return None
        message = "The LocalQueue was restarted after being stopped"
        return self._become(transitions.requeued(self._workload, "True", reason="LocalQueueRestarted", message=message))

    def _gated(self) -> Outcome | None:
        if not self._gates.on(Gate.ADMISSION_GATED_BY):
            return None
        condition = conditions.find(self._workload.status.conditions, conditions.QUOTA_RESERVED)
        was_gated = condition is not None and condition.reason == _GATED
        names = self._workload.metadata.annotations.get(workload.ADMISSION_GATES, "")
        if was_gated and not names:
            self._tell(NORMAL, "AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
            message = "AdmissionGatedBy cleared, waiting for quota reservation"
            reason = self._reason("PendingEvaluation", "Pending")
            return self._become(self._unreserved(reason, message))
        if names and not was_gated:
            self._tell(NORMAL, _GATED, f"Workload admission is gated by: {names}")
            return self._become(self._unreserved(_GATED, f"Admission is gated by: {names}"))
        return None

    def _cluster_queue(self) -> Outcome | None:
        queue = self._around.cluster_queue
        if queue is None:
            return None
        if self._stopped_by("ClusterQueueStopped") and not is_stopped(queue.spec.stop_policy):
            message = "The ClusterQueue was restarted after being stopped"
            return self._become(
                transitions.requeued(self._workload, "True", reason="ClusterQueueRestarted", message=message)
            )
        names = admissibility.expected_checks(self._workload, queue.spec)
        states = self._workload.status.admission_checks
        if not (states or names) or {each.name for each in states} == set(names):
            return None
        synced = workloadstate.sync_checks(states, names, self._now)
        return self._become(
            workloadstate.with_status(
                self._workload, admission_checks=synced or workload.WorkloadStatus().admission_checks
            )
        )

    def _unadmitted(self) -> Outcome | None:
        """Report why the workload is not admitted, or admit it."""
        if workloadstate.is_admitted(self._workload):
            return None
        before = self._workload
        if not workloadstate.has_reservation(self._workload):
            reason, message = self._obstacle()
            if reason:
                self._workload = transitions.condition(
                    self._workload,
                    conditions.QUOTA_RESERVED,
                    "False",
                    reason=reason,
                    message=message,
                    now=self._now,
                )
        self._workload = transitions.sync_admitted(self._workload, self._now, gates=self._gates)
        if self._workload is not before and workloadstate.is_admitted(self._workload):
            reserved = conditions.find(self._workload.status.conditions, conditions.QUOTA_RESERVED)
            since = reserved.last_transition_time if reserved is not None else None
            waited = round((self._now - since).total_seconds()) if since is not None else 0
            admission = self._workload.status.admission
            queue = admission.cluster_queue if admission is not None else ""
            message = f"Admitted by ClusterQueue {queue}, wait time since reservation was {waited}s"
            self._tell(NORMAL, conditions.ADMITTED, message)
        return None

    def _obstacle(self) -> tuple[str, str]:
        """Return the reason and message of the obstacle to admission; empty texts if there is none."""
        blocker = self._blocker()
        if not self._gates.on(Gate.UNADMITTED_OBSERVABILITY):
            return ("Inadmissible", blocker[1]) if blocker is not None else ("", "")
        wl = self._workload
        condition = conditions.find(wl.status.conditions, conditions.QUOTA_RESERVED)
        if not workloadstate.is_active(wl):
            return transitions.DEACTIVATED, "The workload is deactivated"
        if workloadstate.is_on_hold(wl) and condition is not None:
            return condition.reason, condition.message
        if blocker is not None:
            return blocker
        objection = self._objection()
        if objection is not None:
            return "Misconfigured", objection
        if has_gate(wl, self._gates):
            return _GATED, f"Admission is gated by: {wl.metadata.annotations[workload.ADMISSION_GATES]}"
        is_by_scheduler = condition is not None and condition.reason in _SCHEDULER_REASONS
        if self._around.parked_reason is not None and condition is not None and not is_by_scheduler:
            message = "Bypassed scheduling evaluation because an equivalent workload recently failed"
            return self._around.parked_reason, message
        if is_by_scheduler and condition is not None:
            return condition.reason, condition.message
        if condition is None and not self._gates.on(Gate.UNADMITTED_EXPLICIT_STATUS):
            return "", ""
        return "PendingEvaluation", "Workload is pending evaluation in the scheduling queue"

    def _blocker(self) -> tuple[str, str] | None:
        around = self._around
        name = self._workload.spec.queue_name
        if around.local_queue is None:
            return "Misconfigured", f"LocalQueue {name} doesn't exist"
        if is_stopped(around.local_queue.spec.stop_policy):
            return "Suspended", f"LocalQueue {name} is inactive"
        if around.cluster_queue is None:
            return "Misconfigured", f"ClusterQueue {around.queue_name} doesn't exist"
        if not around.is_queue_active:
            return "Suspended", f"ClusterQueue {around.queue_name} is inactive"
        return None

    def _objection(self) -> str | None:
        queue = self._around.cluster_queue
        if queue is None:
            return None
        try:
            takes = labelselectors.of(queue.spec.namespace_selector)
        except errors.InvalidValueError as error:
            return f"invalid namespace selector: {error}"
        return admissibility.objection(self._workload, takes, self._around.places)


def _is_inadmissible(wl: workload.Workload, kind: str) -> bool:
    """Return True if a condition says that the workload's requests kept it out of its queue."""
    condition = conditions.find(wl.status.conditions, kind)
    return condition is not None and condition.status == "False" and condition.reason in _INADMISSIBLE
