"""The workload controller: reconciles workloads outside of admission cycles."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Final

from drachma import errors
from drachma.api import deviceclass, pod, podgroup, resourceclaim, resourceclaimtemplate
from drachma.claims import ownership
from drachma.client import patches
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission
from drachma.queueing.component.caches import (
    BY_CLAIM,
    BY_GROUP,
    BY_LOCAL_QUEUE,
    BY_POD_GROUP,
    BY_TEMPLATE,
    WITH_CLAIMS,
    Caches,
    call_on_change,
    is_spec_changed,
    key_of,
    workload_of,
)
from drachma.queueing.component.workloadwriter import workload_reference
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.kinds import localqueue, workload
from drachma.queueing.lifecycle import workloadreconcile
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadevents import Event
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.informer import Handler

_WORKERS: Final = 8

_log = logging.getLogger(__name__)


class WorkloadController:
    """Reconciles a workload when it or an object around it changes. :mod:`workloadreconcile` decides."""

    name: Final = "workload"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        admission: Admission,
        recorder: events.Recorder,
        queue: workqueue.Queue[str],
    ) -> None:
        self._client: Final = surroundings.client
        self._observe: Final = surroundings.informers.of(resources.WORKLOADS, with_documents=True).observe
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._admission: Final = admission
        self._recorder: Final = recorder
        self._queue: Final = queue
        caches.workloads.add_handler(Handler.on_write(self._handle_workload, deleted=self._handle_gone))
        caches.templates.add_handler(Handler.on_change(self._handle_template))
        caches.classes.add_handler(Handler.on_change(self._handle_class))
        for source in caches.first_alpha.sources if caches.first_alpha is not None else ():
            call_on_change(source, self._handle_devices)
        if caches.groups is not None:
            caches.groups.add_handler(Handler.on_change(self._handle_group))
        caches.pods.add_handler(Handler.on_change(self._handle_pod))
        caches.claims.add_handler(Handler.on_write(self._handle_claim))
        caches.local_queues.add_handler(
            Handler(
                added=self._handle_local_queue,
                updated=lambda old, new: self._handle_local_queue(new) if is_spec_changed(old, new) else None,
                deleted=self._handle_local_queue,
            )
        )
        call_on_change(caches.slices, self._handle_devices)
        call_on_change(caches.namespaces, self._handle_places)

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    # Event handlers

    def _handle_workload(self, wl: workload.Workload) -> None:
        self._queue.hasten(key_of(wl))

    def _handle_gone(self, wl: workload.Workload) -> None:
        self._admission.remove(wl)

    def _handle_template(self, template: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        for each in self._caches.workloads.cache.by(BY_TEMPLATE, key_of(template)):
            self._reconcile_pending(each)
            self._reconcile_with_account(key_of(each))

    def _handle_group(self, group: podgroup.PodGroup) -> None:
        for each in self._caches.workloads.cache.by(BY_GROUP, key_of(group)):
            self._reconcile_pending(each)

    def _handle_class(self, device_class: deviceclass.DeviceClass) -> None:
        if device_class.spec.extended_resource_name is None:
            self._handle_devices()
        else:
            self._handle_places()

    def _handle_local_queue(self, local_queue: localqueue.LocalQueue) -> None:
        """Reconcile the workloads of a local queue, which may be stopped or gone."""
        for each in self._caches.workloads.cache.by(BY_LOCAL_QUEUE, key_of(local_queue)):
            self._queue.hasten(key_of(each))

    def _handle_devices(self) -> None:
        for each in self._caches.workloads.cache.by(WITH_CLAIMS, "yes"):
            self._reconcile_pending(each)

    def _handle_places(self) -> None:
        for each in self._caches.workloads.cache:
            self._reconcile_pending(each)

    def _handle_pod(self, subject: pod.Pod) -> None:
        if key := workload_of(subject):
            self._reconcile_with_account(key)

    def _handle_claim(self, claim: resourceclaim.ResourceClaim) -> None:
        for each in self._caches.workloads.cache.by(BY_CLAIM, key_of(claim)):
            self._reconcile_pending(each)
        owner = ownership.owning_pod(claim)
        if owner is not None and claim.status.allocation is not None:
            user = self._caches.pods.cache.get(owner.name, namespace=claim.metadata.namespace)
            if user is not None:
                self._handle_pod(user)
        group = ownership.owning_group(claim)
        if group is not None and claim.status.allocation is not None:
            members = self._caches.pods.cache.by(BY_POD_GROUP, f"{claim.metadata.namespace}/{group.name}")
            for key in {workload_of(each) for each in members} - {""}:
                self._reconcile_with_account(key)

    def _reconcile_with_account(self, key: str) -> None:
        """Reconcile a workload that holds quota for devices."""
        namespace, _, name = key.partition("/")
        wl = self._caches.workloads.cache.get(name, namespace=namespace)
        if wl is not None and deviceaccount.ANNOTATION in wl.metadata.annotations:
            self._queue.hasten(key)

    def _reconcile_pending(self, wl: workload.Workload) -> None:
        if not workloadstate.has_reservation(wl) and not workloadstate.is_finished(wl):
            self._queue.hasten(key_of(wl))

    # Reconcile

    async def _reconcile(self, key: str) -> controller.After | controller.Again | None:
        namespace, _, name = key.partition("/")
        before = self._caches.workloads.cache.get(name, namespace=namespace)
        if before is None or self._admission.is_decided(key):
            return None
        around = self._caches.neighbourhood(before, parked_reason=self._admission.parked_reason(before))
        now = workloadwrites.current_time(self._clock)
        outcome = workloadreconcile.reconcile(before, around, now, settings=self._configured.settings)
        is_written = await self._write(before, outcome.workload)
        for event in outcome.events:
            self._record(before, event)
        if outcome.is_refused:
            self._admission.remove(before)
        elif not is_written:
            self._admission.update(before, outcome.devices)
        if outcome.error:
            _log.debug("workload %s: %s", key, outcome.error)
            return controller.AGAIN
        seconds = outcome.requeue_after.total_seconds()
        return controller.After(seconds) if seconds > 0 else None

    def _record(self, wl: workload.Workload, event: Event) -> None:
        self._recorder.record(
            workload_reference(wl),
            type=events.WARNING if event.type == events.WARNING else events.NORMAL,
            reason=event.reason,
            message=event.message,
        )

    async def _write(self, before: workload.Workload, after: workload.Workload | None) -> bool:
        """Write the new state of a workload, and return True if anything had to be written."""
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
        current = before
        if main:
            current = self._observe(await workloadwrites.patch(self._recorder, before, main))
        after = workloadwrites.with_times(after, workloadwrites.current_time(self._clock))
        if not workloadwrites.status_change(before, after):
            return bool(main)
        latest = await workloadwrites.write_status(self._recorder, current, after)
        if latest is not None:
            self._observe(latest)
        return True

    async def _delete(self, wl: workload.Workload) -> None:
        """Remove the finalizer of a workload and delete it."""
        if wl.metadata.finalizers:
            finalizers = [each for each in wl.metadata.finalizers if each != workloadreconcile.IN_USE]
            wl = await self._client.patch(
                resources.WORKLOADS,
                wl.metadata.name,
                namespace=wl.metadata.namespace,
                patch=patches.merge({"metadata": {"finalizers": finalizers}}, patches.unchanged(wl)),
            )
        if wl.metadata.deletion_timestamp is None:
            with contextlib.suppress(errors.ObjectNotFoundError):
                await self._client.delete(
                    resources.WORKLOADS,
                    wl.metadata.name,
                    namespace=wl.metadata.namespace,
                    preconditions=patches.same(wl),
                )
