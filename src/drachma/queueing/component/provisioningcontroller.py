"""The controller of the admission check that requests nodes: ProvisioningRequests of workloads, and active checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import meta
from drachma.client import patches
from drachma.queueing.checks import activity
from drachma.queueing.checks import provisioning as provisioningcheck
from drachma.queueing.component import activeconditions, resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.workloadwriter import WorkloadWriter
from drachma.queueing.kinds import admissioncheck, provisioning, workload
from drachma.queueing.workloads import podsetinfo
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 4
_BY_WORKLOAD: Final = "queueing-request-workload"
_BY_CHECK: Final = "queueing-check"

Document = Mapping[str, Any]


class ProvisioningController:
    """Reconciles workloads with checks of this controller when they, their requests or the parameters change."""

    name: Final = "provisioning"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        writer: WorkloadWriter,
    ) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._writer: Final = writer
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            "kueue_provisioning", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._configs: Final = surroundings.informers.of(resources.PROVISIONING_CONFIGS)
        self._requests: Final = surroundings.informers.of(resources.PROVISIONING_REQUESTS, with_documents=True)
        self._requests.cache.add_index(_BY_WORKLOAD, _owning_workloads)
        self._requests.add_handler(Handler.on_change(self._handle_request))
        caches.workloads.cache.add_index(_BY_CHECK, lambda each: [state.name for state in each.status.admission_checks])
        caches.workloads.add_handler(Handler.on_write(self._handle_workload))
        caches.checks.add_handler(Handler.on_change(self._handle_check))
        self._configs.add_handler(Handler.on_change(self._handle_config))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=_WORKERS)

    # Event handlers

    def _handle_workload(self, wl: workload.Workload) -> None:
        if wl.status.admission_checks and any(self._is_own(each.name) for each in wl.status.admission_checks):
            self._queue.hasten(key_of(wl))

    def _handle_request(self, request: meta.Object) -> None:
        for name in _owning_workloads(request):
            namespace, _, workload_name = name.partition("/")
            self._queue.hasten(Key(namespace, workload_name))

    def _handle_check(self, check: admissioncheck.AdmissionCheck) -> None:
        if check.spec.controller_name == admissioncheck.PROVISIONING:
            self._queue.hasten(Key("", check.metadata.name))
            for each in self._caches.workloads.cache.by(_BY_CHECK, check.metadata.name):
                self._queue.hasten(key_of(each))

    def _handle_config(self, config: provisioning.ProvisioningRequestConfig) -> None:
        for each in self._caches.checks.cache:
            if each.spec.parameters is not None and each.spec.parameters.name == config.metadata.name:
                self._handle_check(each)

    def _is_own(self, name: str) -> bool:
        check = self._caches.checks.cache.get(name)
        return check is not None and check.spec.controller_name == admissioncheck.PROVISIONING

    # Reconcile

    async def _reconcile(self, key: Key) -> controller.Again | None:
        if not key.namespace:
            await self._sync_check(key.name)
            return None
        wl = self._caches.workloads.cache.get(key.name, namespace=key.namespace)
        if wl is None:
            return None
        around = provisioningcheck.Around(
            configs={
                each.name: self._config(each.name) for each in wl.status.admission_checks if self._is_own(each.name)
            },
            requests=self._requests_of(key),
            pod_sets=self._caches.pod_sets(wl),
            flavors=self._caches.flavors_by_name,
            gates=self._configured.gates,
        )
        try:
            outcome = provisioningcheck.take_step(wl, around, workloadwrites.current_time(self._clock))
        except (podsetinfo.PodSetConflictError, podsetinfo.FlavorMissingError) as error:
            self._writer.record(wl, "FailedCreate", f"Error creating ProvisioningRequest: {error}", is_warning=True)
            return controller.AGAIN
        await self._writer.write_status(wl, outcome.workload)
        for name in outcome.obsolete:
            await self._delete(key.namespace, name)
        for each in outcome.new:
            await self._create(wl, each)
        for event in outcome.events:
            self._writer.record(wl, event.reason, event.message)
        return None

    def _config(self, check_name: str) -> provisioning.ProvisioningRequestConfigSpec | None:
        """Return the parameters of a check, or None if it has none that exist."""
        check = self._caches.checks.cache.get(check_name)
        if check is None or self._problem(check):
            return None
        assert check.spec.parameters is not None, "a check without a problem has parameters"
        config = self._configs.cache.get(check.spec.parameters.name)
        return None if config is None else config.spec

    def _problem(self, check: admissioncheck.AdmissionCheck) -> str:
        names = {each.metadata.name for each in self._configs.cache}
        return activity.parameters_problem(
            check, provisioningcheck.CONFIG_KIND, resources.PROVISIONING_CONFIGS.plural, names
        )

    def _requests_of(self, key: Key) -> list[Document]:
        names = sorted(
            each.metadata.name for each in self._requests.cache.by(_BY_WORKLOAD, f"{key.namespace}/{key.name}")
        )
        entries = (self._requests.cache.entry(name, namespace=key.namespace) for name in names)
        return [entry.document() for entry in entries if entry is not None]

    # Writes

    async def _sync_check(self, name: str) -> None:
        check = self._caches.checks.cache.get(name)
        if check is None or check.spec.controller_name != admissioncheck.PROVISIONING:
            return
        now = workloadwrites.current_time(self._clock)
        problem = self._problem(check)
        bad = activity.Activity(is_active=False, reason="BadParametersRef", message=problem)
        state = bad if problem else activity.ACTIVE
        await activeconditions.write(self._client, resources.CHECKS, check, state, now)

    async def _delete(self, namespace: str, name: str) -> None:
        try:
            await self._client.delete(
                resources.PROVISIONING_REQUESTS, name, namespace=namespace, propagation="Background"
            )
        except errors.ObjectNotFoundError:
            return

    async def _create(self, wl: workload.Workload, new: provisioningcheck.NewRequest) -> None:
        """Create a request and its pod templates. The templates belong to the workload until the request exists."""
        namespace = wl.metadata.namespace
        for template in new.templates:
            await self._create_once(resources.POD_TEMPLATES, template)
        try:
            request = await self._client.create_document(resources.PROVISIONING_REQUESTS, new.request)
        except errors.ObjectExistsError:
            return
        except errors.RefusedError as error:
            name = new.request["metadata"]["name"]
            message = f'Error creating ProvisioningRequest "{name}": {error}'
            self._writer.record(wl, "FailedCreate", message, is_warning=True)
            raise
        owner = {
            "apiVersion": request["apiVersion"],
            "kind": request["kind"],
            "name": request["metadata"]["name"],
            "uid": request["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        patch = patches.merge({"metadata": {"ownerReferences": [owner]}})
        for template in new.templates:
            await self._client.patch(
                resources.POD_TEMPLATES, template["metadata"]["name"], namespace=namespace, patch=patch
            )

    async def _create_once(self, resource: Any, document: Document) -> None:
        try:
            await self._client.create_document(resource, document)
        except errors.ObjectExistsError:
            return


def _owning_workloads(request: meta.Object) -> list[str]:
    namespace = request.metadata.namespace
    owners = request.metadata.owner_references
    return [f"{namespace}/{each.name}" for each in owners if each.controller and each.kind == "Workload"]
