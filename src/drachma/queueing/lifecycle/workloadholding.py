"""Rules for quota holders: checks, stopped queues, devices, and pods that take too long."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from drachma.queueing import conditions
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.lifecycle.workloadstep import NO_TIME, Outcome, WorkloadStep, is_stopped
from drachma.queueing.workloads import settlement, transitions, workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL, WARNING
from drachma.values import quotation


class HoldingStep(WorkloadStep):
    """The rules for workloads with quota."""

    def _reserving(self) -> Outcome:
        """Check whether a workload may keep its quota."""
        for rule in (
            self._failed_checks,
            self._local_queue_state,
            self._cluster_queue_state,
            self._other_templates,
            self._settled_devices,
        ):
            outcome = rule()
            if outcome is not None:
                return outcome
        rests = (self._late(), self._overdue())
        return self._done(min((each for each in rests if each), default=NO_TIME))

    def _failed_checks(self) -> Outcome | None:
        wl = self._workload
        if workloadstate.is_evicted(wl):
            return None
        rejected = [each for each in wl.status.admission_checks if each.state == "Rejected"]
        if rejected:
            message = _checks_message(rejected, "Rejected")
            self._tell(WARNING, "AdmissionCheckRejected", f"Deactivated due to {message}")
            return self._become(self._deactivate(workloadstate.ADMISSION_CHECK, message))
        retried = [each for each in wl.status.admission_checks if each.state == "Retry"]
        if retried:
            message = f"Evicted due to {_checks_message(retried, 'Retry')}"
            return self._evict(wl, workloadstate.ADMISSION_CHECK, message)
        return None

    def _other_templates(self) -> Outcome | None:
        """Evict a workload whose claims would be created from templates that request more than was counted."""
        around = self._around
        if workloadstate.is_evicted(self._workload):
            return None
        problem = deviceaccount.template_problem(
            self._workload, around.objects, around.mappings, gates=self._gates, policy=self._policy
        )
        return None if problem is None else self._evict(self._workload, transitions.DEVICES_CHANGED, problem)

    def _settled_devices(self) -> Outcome | None:
        """Charge a workload for the devices of its pods, unless they exceed its reservation."""
        before = self._workload
        if workloadstate.is_evicted(before):
            return None
        after = settlement.settle(before, self._around.uses, gates=self._gates)
        if after is before:
            return None
        if isinstance(after, settlement.Overdrawn):
            return self._evict(before, transitions.DEVICES_CHANGED, after.message)
        self._tell(NORMAL, "DevicesSettled", settlement.message(before, after))
        return self._become(after)

    def _deactivate(self, reason: str, message: str) -> workload.Workload:
        return transitions.condition(
            self._workload, conditions.DEACTIVATION_TARGET, "True", reason=reason, message=message, now=None
        )

    def _local_queue_state(self) -> Outcome | None:
        queue = self._around.local_queue
        is_gone = queue is None or queue.metadata.deletion_timestamp is not None
        policy = queue.spec.stop_policy if queue is not None else None
        return self._queue_state("LocalQueue", self._workload.spec.queue_name, policy, is_gone=is_gone)

    def _cluster_queue_state(self) -> Outcome | None:
        queue = self._around.cluster_queue
        is_gone = queue is None or queue.metadata.deletion_timestamp is not None
        policy = queue.spec.stop_policy if queue is not None else None
        return self._queue_state("ClusterQueue", self._around.queue_name, policy, is_gone=is_gone)

    def _queue_state(self, kind: str, name: str, policy: str | None, *, is_gone: bool) -> Outcome | None:
        if workloadstate.is_admitted(self._workload):
            if policy != clusterqueue.HOLD_AND_DRAIN or workloadstate.is_evicted(self._workload):
                return None
            return self._evict(self._workload, f"{kind}Stopped", f"The {kind} is stopped")
        if is_gone:
            reason = self._reason("Misconfigured", "Inadmissible")
            return self._become(self._unreserved(reason, f"{kind} {name} is terminating or missing"))
        if is_stopped(policy):
            reason = self._reason("Suspended", "Inadmissible")
            return self._become(self._unreserved(reason, f"{kind} {name} is stopped"))
        return None

    def _late(self) -> timedelta:
        """Return the time until the pods have to be ready, or evict the workload if it is over."""
        wl, patience = self._workload, self._around.patience
        if patience is None or not workloadstate.is_active(wl) or workloadstate.is_evicted(wl):
            return NO_TIME
        late = workloadstate.lateness(wl, patience.timeouts, self._now)
        if not late.cause or late.recheck_after > NO_TIME:
            return late.recheck_after
        state = wl.status.requeue_state or workload.RequeueState()
        count = (state.count or 0) + 1
        if patience.limit is not None and count > patience.limit:
            message = "exceeding the maximum number of re-queuing retries"
            self._workload = self._deactivate("RequeuingLimitExceeded", message)
            return NO_TIME
        state = workloadstate.wait_until(state, self._now + patience.backoff(count), counts=True)
        message = f"Exceeded the PodsReady timeout {self._key}"
        wl = workloadstate.with_status(wl, requeue_state=state)
        self._evict(wl, workloadstate.PODS_READY_TIMEOUT, message, cause=late.cause)
        return NO_TIME

    def _overdue(self) -> timedelta:
        """Return the time that the workload may still run, or deactivate it if it is over."""
        wl = self._workload
        admitted = conditions.find(wl.status.conditions, conditions.ADMITTED)
        limit = wl.spec.maximum_execution_time_seconds
        if admitted is None or admitted.status != "True" or limit is None or admitted.last_transition_time is None:
            return NO_TIME
        past_seconds = wl.status.accumulated_past_execution_time_seconds or 0
        time_left = timedelta(seconds=limit - past_seconds) - (self._now - admitted.last_transition_time)
        if time_left > NO_TIME:
            return time_left
        if conditions.is_true(wl.status.conditions, conditions.DEACTIVATION_TARGET):
            return NO_TIME
        self._tell(WARNING, "MaximumExecutionTimeExceeded", f"The maximum execution time ({limit}s) exceeded")
        after = self._deactivate("MaximumExecutionTimeExceeded", "exceeding the maximum execution time")
        self._workload = workloadstate.with_status(after, accumulated_past_execution_time_seconds=None)
        return NO_TIME


def _checks_message(checks: Iterable[workload.AdmissionCheckState], state: str) -> str:
    ordered = sorted(checks, key=lambda each: each.name)
    texts = [
        f"{quotation.quote(each.name)} ({each.message})" if each.message else quotation.quote(each.name)
        for each in ordered
    ]
    noun = "AdmissionChecks" if len(ordered) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {'; '.join(texts)}"
