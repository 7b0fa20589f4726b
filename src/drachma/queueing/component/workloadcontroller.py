"""The workload controller: looks at one workload after the other and takes the step that is due."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Final

from drachma import errors
from drachma.api import deviceclass, pod, resourceclaim, resourceclaimtemplate
from drachma.claims import ownership
from drachma.client import patches
from drachma.queueing.component import resources, wholeseconds, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission, workload_reference
from drachma.queueing.component.caches import (
    BY_CLAIM,
    BY_LOCAL_QUEUE,
    BY_TEMPLATE,
    WITH_CLAIMS,
    Caches,
    is_news,
    key_of,
    on_change,
    workload_of,
)
from drachma.queueing.devices import deviceaccount
from drachma.queueing.kinds import localqueue, workload
from drachma.queueing.lifecycle import workloadreconcile
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadevents import Event
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 8

_log = logging.getLogger(__name__)


class WorkloadController:
    """Wakes up for workloads and all around them; what a workload becomes is decided by :mod:`workloadreconcile`."""

    name: Final = "workload"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        admission: Admission,
        recorder: events.Recorder,
    ) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._admission: Final = admission
        self._recorder: Final = recorder
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_workload", time=surroundings.clock, measured=surroundings.queues
        )
        admission.look_again = self._queue.hasten
        admission.look_again_after = self._queue.add_after
        caches.workloads.add_handler(
            Handler(added=self._on_workload, updated=lambda _, new: self._on_workload(new), deleted=self._on_gone)
        )
        caches.templates.add_handler(
            Handler(added=self._on_template, updated=lambda _, new: self._on_template(new), deleted=self._on_template)
        )
        caches.classes.add_handler(
            Handler(added=self._on_class, updated=lambda _, new: self._on_class(new), deleted=self._on_class)
        )
        caches.pods.add_handler(
            Handler(added=self._on_pod, updated=lambda _, new: self._on_pod(new), deleted=self._on_pod)
        )
        caches.claims.add_handler(Handler(added=self._on_claim, updated=lambda _, new: self._on_claim(new)))
        caches.local_queues.add_handler(
            Handler(
                added=self._on_local_queue,
                updated=lambda old, new: self._on_local_queue(new) if is_news(old, new) else None,
                deleted=self._on_local_queue,
            )
        )
        on_change(caches.slices, self._on_devices)
        on_change(caches.namespaces, self._on_places)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    # News

    def _on_workload(self, of: workload.Workload) -> None:
        self._queue.hasten(key_of(of))

    def _on_gone(self, of: workload.Workload) -> None:
        self._admission.gone(of)

    def _on_template(self, of: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        for each in self._caches.workloads.cache.by(BY_TEMPLATE, key_of(of)):
            self._look_at_waiting(each)
            self._look_at_account(key_of(each))

    def _on_class(self, of: deviceclass.DeviceClass) -> None:
        if of.spec.extended_resource_name is None:
            self._on_devices()
        else:
            self._on_places()

    def _on_local_queue(self, of: localqueue.LocalQueue) -> None:
        """Who waits in it may wait no more, and who has quota may lose it: the queue may be stopped, or be gone."""
        for each in self._caches.workloads.cache.by(BY_LOCAL_QUEUE, key_of(of)):
            self._queue.hasten(key_of(each))

    def _on_devices(self) -> None:
        for each in self._caches.workloads.cache.by(WITH_CLAIMS, "yes"):
            self._look_at_waiting(each)

    def _on_places(self) -> None:
        for each in self._caches.workloads.cache:
            self._look_at_waiting(each)

    def _on_pod(self, of: pod.Pod) -> None:
        if key := workload_of(of):
            self._look_at_account(key)

    def _on_claim(self, of: resourceclaim.ResourceClaim) -> None:
        for each in self._caches.workloads.cache.by(BY_CLAIM, key_of(of)):
            self._look_at_waiting(each)
        owner = ownership.owning_pod(of)
        if owner is not None and of.status.allocation is not None:
            user = self._caches.pods.cache.get(owner.name, namespace=of.metadata.namespace)
            if user is not None:
                self._on_pod(user)

    def _look_at_account(self, key: str) -> None:
        """Something happened that may matter for a workload that has quota for devices."""
        namespace, _, name = key.partition("/")
        of = self._caches.workloads.cache.get(name, namespace=namespace)
        if of is not None and deviceaccount.ANNOTATION in of.metadata.annotations:
            self._queue.hasten(key)

    def _look_at_waiting(self, of: workload.Workload) -> None:
        if not workloadstate.has_reservation(of) and not workloadstate.is_finished(of):
            self._queue.hasten(key_of(of))

    # Steps

    async def _reconcile(self, key: str) -> controller.After | controller.Again | None:
        namespace, _, name = key.partition("/")
        before = self._caches.workloads.cache.get(name, namespace=namespace)
        if before is None or self._admission.is_decided(key):
            return None
        around = self._caches.neighbourhood(before, parked_reason=self._admission.parked_reason(before))
        now = wholeseconds.now(self._clock)
        outcome = workloadreconcile.reconcile(before, around, now, settings=self._configured.settings)
        is_written = await self._write(before, outcome.workload)
        for told in outcome.events:
            self._tell(before, told)
        if outcome.is_refused:
            self._admission.gone(before)
        elif not is_written:
            self._admission.note(before, outcome.devices)
        if outcome.error:
            _log.debug("workload %s: %s", key, outcome.error)
            return controller.AGAIN
        rest = outcome.look_again_after.total_seconds()
        return controller.After(rest) if rest > 0 else None

    def _tell(self, about: workload.Workload, told: Event) -> None:
        self._recorder.record(
            workload_reference(about),
            type=events.WARNING if told.type == events.WARNING else events.NORMAL,
            reason=told.reason,
            message=told.message,
        )

    async def _write(self, before: workload.Workload, after: workload.Workload | None) -> bool:
        """Writes what a workload became; whether there was anything to write."""
        if after is before:
            return False
        if after is None:
            await self._delete(before)
            return True
        main: dict[str, Any] = {}
        if after.spec.active != before.spec.active:
            main["spec"] = {"active": after.spec.active}
        if after.metadata.finalizers != before.metadata.finalizers:
            main["metadata"] = {"finalizers": list(after.metadata.finalizers)}
        stored = before
        if main:
            stored = await self._client.patch(
                resources.WORKLOADS,
                before.metadata.name,
                namespace=before.metadata.namespace,
                patch=patches.merge(main, patches.unchanged(before)),
            )
            self._informers.observe(resources.WORKLOADS, stored)
        after = workloadwrites.with_times(after, wholeseconds.now(self._clock))
        if not workloadwrites.status_change(before, after):
            return bool(main)
        self._informers.observe(resources.WORKLOADS, await workloadwrites.write_status(self._client, stored, after))
        return True

    async def _delete(self, of: workload.Workload) -> None:
        """A workload goes, its finalizer first."""
        if of.metadata.finalizers:
            rest = [each for each in of.metadata.finalizers if each != workloadreconcile.IN_USE]
            of = await self._client.patch(
                resources.WORKLOADS,
                of.metadata.name,
                namespace=of.metadata.namespace,
                patch=patches.merge({"metadata": {"finalizers": rest}}, patches.unchanged(of)),
            )
        if of.metadata.deletion_timestamp is None:
            with contextlib.suppress(errors.ObjectNotFoundError):
                await self._client.delete(
                    resources.WORKLOADS,
                    of.metadata.name,
                    namespace=of.metadata.namespace,
                    preconditions=patches.same(of),
                )
