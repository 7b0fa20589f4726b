"""The controller: looks at a budget when it or one of its pods changes, and when an evicted pod should be gone.

A status is written only on the version of the budget that it was computed from, because evictions charge the budget
meanwhile. Who cannot be counted for allows nothing. A second queue takes back the condition of pods that were to be
evicted and were not.
"""

from collections.abc import Iterable
from typing import Any, Final

from drachma import errors
from drachma.api import labelselectors, meta, pod, poddisruptionbudget
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.disruption import budgetstatus, scales, staleconditions
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
    """Which pods a budget is for; InvalidValueError for one that an old rule let pass."""
    return labelselectors.of(budget.spec.selector)


class DisruptionController:
    """Counts for budgets."""

    name: Final = "disruption"

    def __init__(self, surroundings: Surroundings) -> None:
        pods, budgets = surroundings.informers.of(pod.Pod), surroundings.informers.of(Budget)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("controllermanager")
        self._scales: Final = scales.Scales(surroundings)
        self._stale: Final = staleconditions.StaleConditions(surroundings)
        self._pods: Final = pods.cache
        self._budgets: Final = budgets.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        budgets.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        pods.add_handler(informer.Handler(added=self._see_pod, updated=self._see_changed_pod, deleted=self._see_pod))

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._reconcile, workers=WORKERS),
            self._stale.run(),
        )

    # News

    def _see(self, budget: Budget) -> None:
        self._queue.add(cache.key_of(budget))

    def _see_pod(self, new: pod.Pod) -> None:
        for budget in self._of(new):
            self._see(budget)

    def _see_changed_pod(self, old: pod.Pod, new: pod.Pod) -> None:
        self._see_pod(new)
        if old.metadata.labels != new.metadata.labels:
            self._see_pod(old)

    def _of(self, of: pod.Pod) -> Iterable[Budget]:
        for budget in self._budgets.in_namespace(of.metadata.namespace):
            try:
                is_chosen = selector_of(budget).matches(of.metadata.labels)
            except errors.InvalidValueError:
                continue
            if is_chosen:
                yield budget

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        budget = self._budgets.get(key.name, namespace=key.namespace)
        if budget is None:
            return None
        try:
            return await self._look_at(budget)
        except (errors.ReconcileError, errors.InvalidValueError) as error:
            await self._write(budget, budgetstatus.failed(budget, str(error), now=self._clock.utc()))
            return None

    async def _look_at(self, budget: Budget) -> controller.After | None:
        chosen = selector_of(budget)
        namespace = budget.metadata.namespace
        pods = [each for each in self._pods.in_namespace(namespace) if chosen.matches(each.metadata.labels)]
        if not pods:
            self._tell(budget, events.NORMAL, "NoPods", "No matching pods found")
        try:
            expected, desired = await self._expected(budget, pods)
        except errors.ReconcileError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._tell(budget, events.WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        now = self._clock.utc()
        disrupted = budgetstatus.disrupted(budget, pods, now=now)
        for each in disrupted.overdue:
            # Upstream names the namespace twice where it means the budget.
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._tell(each, events.WARNING, "NotDeleted", message)
        counts = budgetstatus.Counts(budgetstatus.healthy(pods, disrupted.pods, now=now), desired, expected)
        status = budgetstatus.next_status(budget, counts, disrupted.pods, now=now)
        await self._write(budget, budgetstatus.changes(status, budget.status))
        return controller.After((disrupted.recheck - now).total_seconds()) if disrupted.recheck is not None else None

    async def _expected(self, budget: Budget, pods: list[pod.Pod]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must stay."""
        least, most = budget.spec.min_available, budget.spec.max_unavailable
        if most is None and least is None:
            return 0, 0
        if most is None and isinstance(least, int):
            return len(pods), least
        expectation = await self._scales.expected(pods)
        if expectation.unmanaged:
            self._tell(budget, events.WARNING, "UnmanagedPods", _UNMANAGED.format(selector_of(budget)))
        if most is not None:
            return expectation.total, max(expectation.total - shares.rounded_up(most, expectation.total), 0)
        assert least is not None, "one of the two is set"
        return expectation.total, shares.rounded_up(least, expectation.total)

    async def _write(self, budget: Budget, status: dict[str, Any]) -> None:
        if not status:
            return
        try:
            meant = patches.unchanged(budget)
            await statuswrites.update(self._client, Budget, of=budget.metadata, content=status, meant=meant)
        except errors.ObjectNotFoundError:
            return

    def _tell(self, about: meta.Object, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(about, type=kind, reason=reason, message=message)
