"""The controller: reconciles a budget when it or one of its pods changes, and when an evicted pod should be gone.

A status is written only on the version of the budget that it was computed from, because evictions charge the budget
meanwhile. A budget whose pods cannot be counted allows no disruption. A second queue withdraws the condition of pods
whose eviction did not happen.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any, Final

from drachma import errors
from drachma.api import labelselectors, meta, pod, poddisruptionbudget
from drachma.claims import conditions, podstate, wellknown
from drachma.controllers import objectwrites
from drachma.controllers.disruption import budgetstatus, scales
from drachma.controllers.workload import shares
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 5

_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)

Budget = poddisruptionbudget.PodDisruptionBudget


def selector_of(budget: Budget) -> labels.Selector:
    """Return the selector of a budget. Raises InvalidValueError for one that older validation accepted."""
    return labelselectors.of(budget.spec.selector)


class DisruptionController:
    """Updates the status of budgets."""

    name: Final = "disruption"

    def __init__(self, surroundings: Surroundings) -> None:
        pods, budgets = surroundings.informers.of(pod.Pod), surroundings.informers.of(Budget)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("controllermanager")
        self._scales: Final = scales.Scales(surroundings)
        self._stale: Final = StaleConditions(surroundings)
        self._pods: Final = pods.cache
        self._budgets: Final = budgets.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, budgets)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        budgets.add_handler(informer.Handler.on_write(self._enqueue))
        pods.add_handler(
            informer.Handler(added=self._handle_pod, updated=self._handle_pod_update, deleted=self._handle_pod)
        )

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._reconcile, workers=WORKERS),
            self._stale.run(),
        )

    # Handlers

    def _enqueue(self, budget: Budget) -> None:
        self._queue.add(cache.key_of(budget))

    def _handle_pod(self, new: pod.Pod) -> None:
        for budget in self._of(new):
            self._enqueue(budget)

    def _handle_pod_update(self, old: pod.Pod, new: pod.Pod) -> None:
        self._handle_pod(new)
        if old.metadata.labels != new.metadata.labels:
            self._handle_pod(old)

    def _of(self, pod: pod.Pod) -> Iterable[Budget]:
        for budget in self._budgets.list_namespace(pod.metadata.namespace):
            try:
                is_chosen = selector_of(budget).matches(pod.metadata.labels)
            except errors.InvalidValueError:
                continue
            if is_chosen:
                yield budget

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        budget = self._budgets.get(key.name, namespace=key.namespace)
        if budget is None:
            return None
        try:
            return await self._sync(budget)
        except (errors.ReconcileError, errors.InvalidValueError) as error:
            await self._write(budget, budgetstatus.failed(budget, str(error), now=self._clock.utc()))
            return None

    async def _sync(self, budget: Budget) -> controller.After | None:
        selector = selector_of(budget)
        namespace = budget.metadata.namespace
        pods = [each for each in self._pods.list_namespace(namespace) if selector.matches(each.metadata.labels)]
        if not pods:
            self._record(budget, events.NORMAL, "NoPods", "No matching pods found")
        try:
            expected_count, desired = await self._expected(budget, pods)
        except errors.ReconcileError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._record(budget, events.WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        now = self._clock.utc()
        disrupted = budgetstatus.disrupted(budget, pods, now=now)
        for each in disrupted.overdue:
            # Upstream writes the namespace twice instead of the name of the budget.
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._record(each, events.WARNING, "NotDeleted", message)
        counts = budgetstatus.Counts(budgetstatus.healthy(pods, disrupted.pods, now=now), desired, expected_count)
        status = budgetstatus.next_status(budget, counts, disrupted.pods, now=now)
        await self._write(budget, budgetstatus.changes(status, budget.status))
        return controller.After((disrupted.recheck - now).total_seconds()) if disrupted.recheck is not None else None

    async def _expected(self, budget: Budget, pods: list[pod.Pod]) -> tuple[int, int]:
        """Return the expected number of pods, and the number that must be healthy."""
        least, most = budget.spec.min_available, budget.spec.max_unavailable
        if most is None and least is None:
            return 0, 0
        if most is None and isinstance(least, int):
            return len(pods), least
        expectation = await self._scales.expected(pods)
        if expectation.unmanaged:
            self._record(budget, events.WARNING, "UnmanagedPods", _UNMANAGED.format(selector_of(budget)))
        if most is not None:
            return expectation.total, max(expectation.total - shares.rounded_up(most, expectation.total), 0)
        assert least is not None, "one of the two is set"
        return expectation.total, shares.rounded_up(least, expectation.total)

    async def _write(self, budget: Budget, status: dict[str, Any]) -> None:
        if not status:
            return
        try:
            await self._writer.update_status(budget, status, only_if_unchanged=True)
        except errors.ObjectNotFoundError:
            return

    def _record(self, subject: meta.Object, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(subject, type=kind, reason=reason, message=message)


# Conditions of pods that were not evicted


STALE_AFTER: Final = dt.timedelta(minutes=2)

_BY_KUBELET: Final = "TerminationByKubelet"
"""Reason of a termination by the kubelet, which has no time limit."""


class StaleConditions:
    """Withdraws the DisruptionTarget condition of pods that were not deleted."""

    name: Final = "stale_pod_disruption"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._pods: Final = pods.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        pods.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _enqueue(self, new: pod.Pod) -> None:
        if _stale_condition(new) is not None:
            self._queue.add(cache.key_of(new))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        current = self._pods.get(key.name, namespace=key.namespace)
        condition = _stale_condition(current) if current is not None else None
        if current is None or condition is None:
            return None
        now = self._clock.utc()
        since = condition.last_transition_time or now
        seconds = (since + STALE_AFTER - now).total_seconds()
        if seconds > 0:
            return controller.After(seconds)
        withdrawn = conditions.document(wellknown.DISRUPTION_TARGET, "False", reason=None, message=None, now=now)
        try:
            await objectwrites.write_pod_status(self._client, current, {"conditions": [withdrawn]})
        except errors.ObjectNotFoundError:
            return None
        return None


def _stale_condition(pod: pod.Pod) -> pod.PodCondition | None:
    """Return the condition of a pod that may have to be withdrawn."""
    if pod.metadata.deletion_timestamp is not None or podstate.has_ended(pod):
        return None
    condition = conditions.find(pod.status.conditions, wellknown.DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason == _BY_KUBELET:
        return None
    return condition
