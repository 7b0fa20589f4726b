"""The controller that dispatches workloads to other clusters: connections, active checks, copies and their jobs."""

from __future__ import annotations

import base64
import binascii
import contextlib
import pathlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from drachma import errors
from drachma.api import secret
from drachma.queueing.checks import activity, dispatch
from drachma.queueing.component import activeconditions, remotecopies, resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.jobcontroller import JobKind
from drachma.queueing.component.remoteclusters import Connect, RemoteCluster, RemoteClusters
from drachma.queueing.component.remotecopies import RemoteCopies
from drachma.queueing.component.workloadwriter import WorkloadWriter
from drachma.queueing.jobs.templatejob import get_path
from drachma.queueing.kinds import admissioncheck, multikueue, workload
from drachma.runtime import Surroundings, controller, events, workqueue
from drachma.runtime.cache import Key, key_of
from drachma.runtime.informer import Handler

_WORKERS: Final = 4
_CHECK_SECONDS: Final = 10.0
"""Time between two looks at a connection that works."""
_FIRST_RETRY_SECONDS: Final = 5.0
_MOST_DOUBLINGS: Final = 6
"""Failed attempts to connect after which the time between attempts no longer doubles, as in Kueue."""
_DEFERRED_SECONDS: Final = 1.0
"""Time until a status is copied that the local job could not take yet."""

Document = Mapping[str, Any]


class DispatchController:
    """Reconciles workloads with a check of this controller, and the clusters that they may go to."""

    name: Final = "dispatch"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        writer: WorkloadWriter,
        connect: Connect,
    ) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._informers: Final = surroundings.informers
        self._caches: Final = caches
        self._configured: Final = configured
        self._writer: Final = writer
        self._queue: Final[workqueue.Queue[Key]] = workqueue.Queue(
            "kueue_multikueue_workload", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._cluster_queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_multikueue_cluster", clock=surroundings.clock, metrics=surroundings.queues
        )
        self._copies: Final = RemoteCopies(surroundings, caches, origin=lambda: self._origin)
        self._clusters: Final = RemoteClusters(connect, surroundings.clock, self._queue.hasten)
        self._failures: Final[dict[str, int]] = {}
        """Consecutive failed attempts to connect, by cluster."""
        self._cluster_objects: Final = surroundings.informers.of(resources.MULTI_KUEUE_CLUSTERS)
        self._configs: Final = surroundings.informers.of(resources.MULTI_KUEUE_CONFIGS)
        self._cluster_objects.add_handler(Handler.on_change(self._handle_cluster))
        self._configs.add_handler(Handler.on_change(lambda _: self._handle_configs()))
        caches.checks.add_handler(Handler.on_write(self._handle_check))
        caches.workloads.add_handler(
            Handler.on_write(self._handle_workload, deleted=lambda old: self._queue.hasten(key_of(old)))
        )

    async def run(self) -> None:
        try:
            await controller.together(
                controller.work(self._queue, self._reconcile, workers=_WORKERS),
                controller.work(self._cluster_queue, self._reconcile_cluster, workers=1),
            )
        finally:
            await self._clusters.close()

    # Event handlers

    def _handle_workload(self, wl: workload.Workload) -> None:
        if self._check_of(wl) is not None:
            self._queue.hasten(key_of(wl))

    def _handle_cluster(self, cluster: multikueue.MultiKueueCluster) -> None:
        self._cluster_queue.hasten(cluster.metadata.name)
        self._handle_configs()

    def _handle_configs(self) -> None:
        for check in self._caches.checks.cache:
            self._handle_check(check)

    def _handle_check(self, check: admissioncheck.AdmissionCheck) -> None:
        if check.spec.controller_name == admissioncheck.MULTI_KUEUE:
            self._queue.hasten(Key("", check.metadata.name))

    def _check_of(self, wl: workload.Workload) -> workload.AdmissionCheckState | None:
        """Return the state of the check of a workload that belongs to this controller."""
        for state in wl.status.admission_checks:
            check = self._caches.checks.cache.get(state.name)
            if check is not None and check.spec.controller_name == admissioncheck.MULTI_KUEUE:
                return state
        return None

    # Clusters

    async def _reconcile_cluster(self, name: str) -> controller.After | None:
        cluster = self._cluster_objects.cache.get(name)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            await self._clusters.remove(name)
            self._failures.pop(name, None)
            return None
        was_connected = name in self._clusters.connected
        try:
            config = await self._kubeconfig(cluster)
        except errors.DrachmaError as error:
            await self._clusters.remove(name)
            await self._report(
                cluster,
                activity.Activity(
                    is_active=False, reason="BadKubeConfig", message=f"load client config failed: {error}"
                ),
            )
            return controller.After(_CHECK_SECONDS)
        problem = await self._clusters.set(name, config)
        if problem:
            self._failures[name] = self._failures.get(name, 0) + 1
            await self._report(
                cluster, activity.Activity(is_active=False, reason="ClientConnectionFailed", message=problem)
            )
        else:
            self._failures.pop(name, None)
            await self._report(cluster, activity.Activity(is_active=True, reason="Active", message="Connected"))
            await self._collect_garbage(self._clusters.connected[name])
        if was_connected != (name in self._clusters.connected):
            for each in self._caches.workloads.cache:
                self._handle_workload(each)
        return controller.After(self._seconds_to_next_look(name))

    def _seconds_to_next_look(self, name: str) -> float:
        failures = self._failures.get(name, 0)
        return _FIRST_RETRY_SECONDS * 2 ** min(failures - 1, _MOST_DOUBLINGS) if failures else _CHECK_SECONDS

    async def _report(self, cluster: multikueue.MultiKueueCluster, state: activity.Activity) -> None:
        now = workloadwrites.current_time(self._clock)
        with contextlib.suppress(errors.ObjectNotFoundError, errors.ObjectConflictError):
            await activeconditions.write(self._client, resources.MULTI_KUEUE_CLUSTERS, cluster, state, now)

    async def _kubeconfig(self, cluster: multikueue.MultiKueueCluster) -> bytes:
        """Return the kubeconfig of a cluster. Raises errors.DrachmaError if there is none."""
        source = cluster.spec.cluster_source.kube_config
        if source is None:
            raise errors.InvalidValueError("clusterSource: only kubeConfig is supported")
        if source.location_type == "Path":
            try:
                return pathlib.Path(source.location).read_bytes()
            except OSError as error:
                raise errors.AccessError(f"{source.location}: {error.strerror}") from None
        namespace = self._configured.configuration.namespace or "kueue-system"
        document = await self._client.get_document(secret.Secret, source.location, namespace=namespace)
        encoded = (document.get("data") or {}).get("kubeconfig")
        if encoded is None:
            raise errors.InvalidValueError(f'key "kubeconfig" not found in secret "{source.location}"')
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise errors.InvalidValueError(f'secret "{source.location}": kubeconfig is not base64: {error}') from None

    async def _collect_garbage(self, cluster: RemoteCluster) -> None:
        """Remove the copies in a cluster whose workloads are gone here."""
        for copy in tuple(cluster.workloads.cache):
            if copy.metadata.labels.get(multikueue.ORIGIN) != self._origin:
                continue
            local = self._caches.workloads.cache.get(copy.metadata.name, namespace=copy.metadata.namespace)
            if local is None or local.metadata.deletion_timestamp is not None:
                await self._copies.remove(cluster, copy)

    # Checks

    async def _sync_check(self, name: str) -> None:
        check = self._caches.checks.cache.get(name)
        if check is None:
            return
        names = {each.metadata.name for each in self._configs.cache}
        plural = resources.MULTI_KUEUE_CONFIGS.plural
        problem = activity.parameters_problem(check, dispatch.CONFIG_KIND, plural, names)
        if problem:
            message = f"Cannot load the AdmissionChecks parameters: {problem}"
            state = activity.Activity(is_active=False, reason="BadConfig", message=message)
        else:
            clusters = self._clusters_of(name)
            by_name = {each.metadata.name: each for each in self._cluster_objects.cache}
            missing_names = [each for each in clusters if each not in by_name]
            inactive = [each for each in clusters if each in by_name and not _is_active(by_name[each])]
            state = activity.clusters_activity(clusters, inactive=inactive, missing=missing_names)
        now = workloadwrites.current_time(self._clock)
        await activeconditions.write(self._client, resources.CHECKS, check, state, now)

    def _clusters_of(self, check_name: str) -> tuple[str, ...]:
        check = self._caches.checks.cache.get(check_name)
        reference = None if check is None else check.spec.parameters
        config = None if reference is None else self._configs.cache.get(reference.name)
        return () if config is None else config.spec.clusters

    # Workloads

    @property
    def _origin(self) -> str:
        settings = self._configured.configuration.multi_kueue
        return (settings.origin if settings is not None else None) or "multikueue"

    @property
    def _settings(self) -> dispatch.Settings:
        return dispatch.Settings(
            worker_lost_timeout=self._configured.worker_lost_timeout,
            nominates_all=self._configured.nominates_all_clusters,
        )

    async def _reconcile(self, key: Key) -> controller.After | controller.Again | None:
        if not key.namespace:
            await self._sync_check(key.name)
            return None
        wl = self._caches.workloads.cache.get(key.name, namespace=key.namespace)
        if wl is None or wl.metadata.deletion_timestamp is not None:
            await self._forget(key)
            return None
        state = self._check_of(wl)
        if state is None or state.state == "Rejected":
            return None
        now = workloadwrites.current_time(self._clock)
        kind, name, problem = await self._owner(wl)
        if kind is None:
            await self._writer.write_status(wl, dispatch.reject(wl, state.name, problem, now))
            return None
        group = self._group(wl, state.name)
        decision = dispatch.decide(group, now, self._settings)
        is_deferred = False
        for action in decision.actions:
            is_deferred |= await self._carry_out(action, group, kind=kind, job_name=name)
        await self._writer.write_status(wl, decision.workload)
        for event in decision.events:
            self._writer.record(wl, event.reason, event.message, is_warning=event.type == events.WARNING)
        seconds = _DEFERRED_SECONDS if is_deferred else decision.requeue_after / timedelta(seconds=1)
        return controller.After(seconds) if seconds > 0 else None

    async def _owner(self, wl: workload.Workload) -> tuple[JobKind | None, str, str]:
        """Return the kind and name of the job of a workload, or the reason why it cannot be dispatched."""
        owners = wl.metadata.owner_references
        owner = next((each for each in owners if each.controller), owners[0] if owners else None)
        if owner is None:
            return None, "", "No multikueue adapter found"
        kind = remotecopies.KINDS.get((owner.api_version, owner.kind))
        if kind is None:
            text = f"{owner.api_version}, Kind={owner.kind}"
            return None, "", f'No multikueue adapter found for owner kind "{text}"'
        job = await remotecopies.get_document(self._client, kind.resource, owner.name, wl.metadata.namespace)
        managed_by = "" if job is None else get_path(job["spec"], kind.model.managed_by_path) or ""
        if job is not None and managed_by != admissioncheck.MULTI_KUEUE:
            expectation = f'Expecting spec.managedBy to be "{admissioncheck.MULTI_KUEUE}" not "{managed_by}"'
            return None, "", f"The owner is not managed by Kueue: {expectation}"
        return kind, owner.name, ""

    def _group(self, wl: workload.Workload, check_name: str) -> dispatch.Dispatched:
        names, connected = self._clusters_of(check_name), self._clusters.connected
        place = {"namespace": wl.metadata.namespace}
        entries = {
            name: connected[name].workloads.cache.entry(wl.metadata.name, **place)
            for name in names
            if name in connected
        }
        copies = {name: connected[name].workloads.cache.get(wl.metadata.name, **place) for name in entries}
        return dispatch.Dispatched(
            local=wl,
            local_spec=self._caches.workload_document(wl)["spec"],
            check=check_name,
            copies=copies,
            copy_specs={name: entry.document()["spec"] for name, entry in entries.items() if entry is not None},
            lost_since={name: self._clusters.lost_since(name) for name in names if name not in connected},
        )

    # Changes in other clusters

    async def _carry_out(
        self, action: dispatch.Action, group: dispatch.Dispatched, *, kind: JobKind, job_name: str
    ) -> bool:
        """Carry out a change in another cluster. Return True if it has to be completed later."""
        cluster = self._clusters.connected.get(action.cluster)
        if cluster is None:
            return True
        wl, copy = group.local, group.copies.get(action.cluster)
        match action.act:
            case dispatch.Act.CREATE:
                await self._copies.create(cluster, wl)
            case dispatch.Act.REMOVE if copy is not None:
                await self._copies.remove(cluster, copy)
            case dispatch.Act.UPDATE_PRIORITY if copy is not None:
                spec = {name: group.local_spec.get(name) for name in ("priority", "priorityClassRef")}
                await self._copies.patch(cluster, copy, {"spec": spec})
            case dispatch.Act.DEACTIVATE if copy is not None:
                await self._copies.deactivate(cluster, copy, wl)
            case dispatch.Act.SYNC_JOB:
                return await self._copies.sync_job(cluster, wl, kind, job_name)
        return False

    async def _forget(self, key: Key) -> None:
        """Remove the copies of a workload that is gone."""
        for cluster in self._clusters.connected.values():
            copy = cluster.workloads.cache.get(key.name, namespace=key.namespace)
            if copy is not None:
                await self._copies.remove(cluster, copy)


def _is_active(cluster: multikueue.MultiKueueCluster) -> bool:
    return any(each.type == "Active" and each.status == "True" for each in cluster.status.conditions)
