"""The controller: every 15 seconds it compares the metrics of each autoscaler with their targets and scales.

Conditions, events and messages are upstream's. It reads and writes the ``scale`` subresource, so custom resources with
one can be scaled too. Recommendations and changes are remembered in memory, as upstream does: after a restart a
scale-down waits for a whole window again.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import horizontalpodautoscaler as hpa
from drachma.api import meta, pod
from drachma.claims import conditions
from drachma.client import Client, target
from drachma.controllers import objectwrites
from drachma.controllers.podautoscaling import behavior, replicacount, resourcemetrics
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import label_syntax, labels, quotation

WORKERS: Final = 5
SYNC_SECONDS: Final = 15.0

_NO_SELECTOR: Final = "the HPA target's scale is missing a selector"


class _Scale(NamedTuple):
    """The scale of a workload, and the resource that it belongs to."""

    resource: target.Target[meta.Object]
    document: dict[str, Any]

    @property
    def replicas(self) -> int:
        return int((self.document.get("spec") or {}).get("replicas") or 0)

    @property
    def selector(self) -> str:
        return str((self.document.get("status") or {}).get("selector") or "")


class _Changes:
    """Status of one autoscaler as a reconcile changes it."""

    def __init__(self, document: Mapping[str, Any], *, now: dt.datetime) -> None:
        self.conditions: list[Mapping[str, Any]] = list((document.get("status") or {}).get("conditions") or ())
        self.metrics: list[dict[str, Any]] = []
        self._now: Final = now

    def set(self, kind: str, status: str, *, reason: str, message: str) -> None:
        """Set a condition; its transition time changes with its status only."""
        new = conditions.document(kind, status, reason=reason, message=message, now=self._now)
        self.conditions = conditions.put_document(self.conditions, new)


class HorizontalPodAutoscaling:
    """Scales workloads by the resource usage of their pods."""

    name: Final = "horizontalpodautoscaler"

    def __init__(self, surroundings: Surroundings) -> None:
        autoscalers = surroundings.informers.of(hpa.HorizontalPodAutoscaler)
        self._client: Final[Client] = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("horizontal-pod-autoscaler")
        self._autoscalers: Final = autoscalers.cache
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._writer: Final = objectwrites.Writer(surroundings.client, autoscalers)
        self._histories: Final[dict[cache.Key, behavior.History]] = {}
        self._selectors: Final[dict[cache.Key, labels.Selector]] = {}
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        autoscalers.add_handler(
            informer.Handler(added=self._enqueue, updated=self._handle_update, deleted=self._handle_deletion)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, autoscaler: hpa.HorizontalPodAutoscaler) -> None:
        # Pods of a new workload need that time before they have metrics.
        self._queue.add_after(cache.key_of(autoscaler), SYNC_SECONDS)

    def _handle_update(self, old: hpa.HorizontalPodAutoscaler, new: hpa.HorizontalPodAutoscaler) -> None:
        if old.spec != new.spec:
            self._enqueue(new)

    def _handle_deletion(self, autoscaler: hpa.HorizontalPodAutoscaler) -> None:
        self._histories.pop(cache.key_of(autoscaler), None)
        self._selectors.pop(cache.key_of(autoscaler), None)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        autoscaler = self._autoscalers.get(key.name, namespace=key.namespace)
        if autoscaler is None:
            return None
        try:
            await self._sync(autoscaler, _Changes(self._writer.document(autoscaler), now=self._clock.utc()))
        except errors.ObjectNotFoundError:
            return None
        except errors.ReconcileError as error:
            self._warn(autoscaler, "FailedComputeMetricsReplicas", str(error))
        return controller.After(SYNC_SECONDS)

    async def _sync(self, autoscaler: hpa.HorizontalPodAutoscaler, changes: _Changes) -> None:
        spec = autoscaler.spec
        try:
            scale = await self._read_scale(autoscaler)
        except errors.DrachmaError as error:
            self._warn(autoscaler, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            changes.set(hpa.ABLE_TO_SCALE, "False", reason="FailedGetScale", message=message)
            await self._write(autoscaler, changes)
            return
        message = "the HPA controller was able to get the target's current scale"
        changes.set(hpa.ABLE_TO_SCALE, "True", reason="SucceededGetScale", message=message)
        current, now = scale.replicas, self._clock.utc()
        history = self._histories.setdefault(cache.key_of(autoscaler), behavior.History())
        history.start(current, now=now)
        least = 1 if spec.min_replicas is None else spec.min_replicas
        desired, reason = current, ""
        if current == 0 and least != 0:
            desired = 0
            message = "scaling is disabled since the replica count of the target is zero"
            changes.set(hpa.SCALING_ACTIVE, "False", reason="ScalingDisabled", message=message)
        elif current > spec.max_replicas:
            desired, reason = spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, reason = least, "Current number of replicas below Spec.MinReplicas"
        else:
            try:
                proposal, name = await self._propose(autoscaler, scale, changes)
            except errors.ReconcileError:
                await self._write(autoscaler, changes, current=current)
                raise
            reason = f"{name} above target" if proposal > current else "All metrics below target"
            decision = behavior.decide(spec, history, current=current, replicas=proposal, now=now)
            changes.set(hpa.ABLE_TO_SCALE, "True", reason=decision.stabilization[0], message=decision.stabilization[1])
            is_limited = "True" if decision.is_limited else "False"
            changes.set(hpa.SCALING_LIMITED, is_limited, reason=decision.limit[0], message=decision.limit[1])
            desired = decision.replicas
        if desired == current:
            await self._write(autoscaler, changes, current=current, desired=current)
            return
        try:
            await self._write_scale(scale, desired)
        except errors.DrachmaError as error:
            self._warn(autoscaler, "FailedRescale", f"New size: {desired}; reason: {reason}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            changes.set(hpa.ABLE_TO_SCALE, "False", reason="FailedUpdateScale", message=message)
            await self._write(autoscaler, changes, current=current)
            return
        message = f"the HPA controller was able to update the target scale to {desired}"
        changes.set(hpa.ABLE_TO_SCALE, "True", reason="SucceededRescale", message=message)
        self._record(autoscaler, events.NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
        history.scale(desired - current, now=now)
        await self._write(autoscaler, changes, current=current, desired=desired, scaled_at=now)

    async def _propose(
        self, autoscaler: hpa.HorizontalPodAutoscaler, scale: _Scale, changes: _Changes
    ) -> tuple[int, str]:
        """Return the largest number of replicas that a metric asks for, and the metric's name."""
        workload = self._workload(autoscaler, scale, changes)
        rules, replicas, name, problems = autoscaler.spec.behavior, 0, "", list[resourcemetrics.MetricError]()
        for metric in autoscaler.spec.metrics:
            try:
                proposal = await resourcemetrics.evaluate(
                    self._client, metric, workload, tolerances=_tolerances(rules), now=self._clock.utc()
                )
            except resourcemetrics.MetricError as error:
                self._warn(autoscaler, error.reason, str(error))
                problems.append(error)
                continue
            changes.metrics.append(proposal.status)
            if not name or proposal.replicas > replicas:
                replicas, name = proposal.replicas, proposal.name
        count = len(autoscaler.spec.metrics)
        if problems and (len(problems) >= count or replicas < scale.replicas):
            first = problems[0]
            message = f"the HPA was unable to compute the replica count: {first}"
            changes.set(hpa.SCALING_ACTIVE, "False", reason=first.reason, message=message)
            problem = f"failed to get {first.source} metric value: {first}"
            raise errors.ReconcileError(
                f"invalid metrics ({len(problems)} invalid out of {count}), first error is: {problem}"
            )
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        changes.set(hpa.SCALING_ACTIVE, "True", reason="ValidMetricFound", message=message)
        return replicas, name

    def _workload(
        self, autoscaler: hpa.HorizontalPodAutoscaler, scale: _Scale, changes: _Changes
    ) -> resourcemetrics.Workload:
        """Return the pods of a scale. Raises ReconcileError if its selector cannot be used."""
        if not scale.selector:
            self._warn(autoscaler, "SelectorRequired", "selector is required")
            changes.set(hpa.SCALING_ACTIVE, "False", reason="InvalidSelector", message=_NO_SELECTOR)
            raise errors.ReconcileError("selector is required")
        try:
            selector = label_syntax.parse(scale.selector)
        except errors.InvalidValueError as error:
            problem = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._warn(autoscaler, "InvalidSelector", problem)
            changes.set(hpa.SCALING_ACTIVE, "False", reason="InvalidSelector", message=problem)
            raise errors.ReconcileError(problem) from None
        namespace = autoscaler.metadata.namespace
        pods = [each for each in self._pods.list_namespace(namespace) if selector.matches(each.metadata.labels)]
        self._selectors[cache.key_of(autoscaler)] = selector
        owners = self._autoscalers_of(pods, namespace)
        if len(owners) > 1:
            problem = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(owners)}]"
            self._warn(autoscaler, "AmbiguousSelector", problem)
            changes.set(hpa.SCALING_ACTIVE, "False", reason="AmbiguousSelector", message=problem)
            raise errors.ReconcileError(problem)
        return resourcemetrics.Workload(namespace, scale.selector, scale.replicas, pods)

    def _autoscalers_of(self, pods: Iterable[pod.Pod], namespace: str) -> list[str]:
        """Return the autoscalers whose selectors match one of these pods."""
        selectors = [(key, own) for key, own in self._selectors.items() if key.namespace == namespace]
        return sorted(
            {
                f"{key.namespace}/{key.name}"
                for each in pods
                for key, own in selectors
                if own.matches(each.metadata.labels)
            }
        )

    # The scale of the workload

    async def _read_scale(self, autoscaler: hpa.HorizontalPodAutoscaler) -> _Scale:
        reference = autoscaler.spec.scale_target_ref
        group = reference.api_version.rpartition("/")[0]
        for resource in await self._client.resources():
            if (resource.group, resource.kind) == (group, reference.kind):
                namespace = autoscaler.metadata.namespace if resource.namespaced else ""
                document = await self._client.get_document(
                    resource, reference.name, namespace=namespace, subresource="scale"
                )
                return _Scale(resource, document)
        kind, version = quotation.quote(reference.kind), quotation.quote(reference.api_version)
        raise errors.ReconcileError(f"no matches for kind {kind} in version {version}")

    async def _write_scale(self, scale: _Scale, replicas: int) -> None:
        document = objectwrites.merge(scale.document, {"spec": {"replicas": replicas}})
        await self._client.update_document(scale.resource, document, subresource="scale")

    # Status and events

    async def _write(
        self,
        autoscaler: hpa.HorizontalPodAutoscaler,
        changes: _Changes,
        *,
        current: int | None = None,
        desired: int | None = None,
        scaled_at: dt.datetime | None = None,
    ) -> None:
        """Write what has changed of the status. Without ``desired``, the desired replicas and metrics stay."""
        document = self._writer.document(autoscaler)
        before = document.get("status") or {}
        change: dict[str, Any] = {"conditions": changes.conditions}
        if current is not None:
            change["currentReplicas"] = current
        if desired is not None:
            change["desiredReplicas"] = desired
            change["currentMetrics"] = changes.metrics or None
            change["observedGeneration"] = autoscaler.metadata.generation
        if scaled_at is not None:
            change["lastScaleTime"] = meta.time_text(scaled_at)
        status = objectwrites.merge(before, change)
        if status != before:
            document["status"] = status
            await self._writer.replace(document, subresource="status")

    def _warn(self, autoscaler: hpa.HorizontalPodAutoscaler, reason: str, message: str) -> None:
        self._record(autoscaler, events.WARNING, reason, message)

    def _record(self, subject: meta.Object, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(subject, type=kind, reason=reason, message=message)


def _tolerances(rules: hpa.Behavior | None) -> replicacount.Tolerances:
    def tolerance(own: hpa.ScalingRules | None) -> float:
        return replicacount.TOLERANCE if own is None or own.tolerance is None else own.tolerance.as_approximate_float()

    if rules is None:
        return replicacount.Tolerances()
    return replicacount.Tolerances(up=tolerance(rules.scale_up), down=tolerance(rules.scale_down))
