"""The controller: keeps a pod on every suitable node, rolls out new templates, and writes the status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import daemonset, labelselectors, meta, node, pod
from drachma.claims import podstate
from drachma.client import patches
from drachma.controllers import objectwrites
from drachma.controllers.daemonset import daemonpods, rollout
from drachma.controllers.workload import adoption, expectations, history, members, podcontrol, podtemplates, readiness
from drachma.runtime import Surroundings, cache, controller, events, informer, workqueue
from drachma.values import labels

WORKERS: Final = 2

_OMITTED_IF_ZERO: Final = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")

DaemonSet = daemonset.DaemonSet


class DaemonSetController:
    """Keeps a pod on every node."""

    name: Final = "daemonset"

    def __init__(self, surroundings: Surroundings) -> None:
        pods = surroundings.informers.of(pod.Pod)
        sets = surroundings.informers.of(DaemonSet)
        nodes = surroundings.informers.of(node.Node)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("daemonset-controller")
        self._sets: Final = sets.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, sets, recorder=self._recorder)
        self._nodes: Final = nodes.cache
        self._expected: Final = expectations.Expectations(pods)
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected_writes=self._expected)
        self._control: Final = podcontrol.PodControl(
            surroundings.client, expected_writes=self._expected, recorder=self._recorder
        )
        self._history: Final = history.History(surroundings)
        self._failures: Final = rollout.Failures()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        sets.add_handler(informer.Handler.on_write(self._enqueue, deleted=self._forget))
        self._members: Final = members.Members(
            pods, self._sets, kind=DaemonSet, selector=_selector, enqueue=self._queue.add
        )
        nodes.add_handler(
            informer.Handler(added=self._handle_node, updated=self._handle_node_update, deleted=self._handle_node)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # Handlers

    def _enqueue(self, daemon_set: DaemonSet) -> None:
        self._queue.add(cache.key_of(daemon_set))

    def _forget(self, daemon_set: DaemonSet) -> None:
        uid = daemon_set.metadata.uid
        self._expected.forget(uid)
        self._history.forget(uid)
        self._failures.forget(uid)

    def _handle_node(self, _: node.Node) -> None:
        for each in self._sets:
            self._enqueue(each)

    def _handle_node_update(self, old: node.Node, new: node.Node) -> None:
        """Reconcile if labels or taints of a node change; heartbeats do not matter."""
        if (old.metadata.labels, old.spec) != (new.metadata.labels, new.spec):
            self._handle_node(new)

    # Reconciling

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        daemon_set = self._sets.get(key.name, namespace=key.namespace)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return None
        if daemon_set.spec.selector == meta.LabelSelector():
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.record(daemon_set, type=events.WARNING, reason="SelectingAll", message=text)
            return None
        uid = daemon_set.metadata.uid
        if not self._history.is_up_to_date(uid) or not self._expected.are_met(uid):
            return controller.AGAIN
        pods = await self._claim(daemon_set)
        revisions = await self._history.of(daemon_set, _selector(daemon_set))
        current, old = await self._current(daemon_set, revisions, pods)
        cluster = self._cluster(daemon_set, pods, mark=current.metadata.labels[history.HASH])
        try:
            wait = await self._manage(cluster)
            await self._truncate(daemon_set, old, pods)
        finally:
            await self._write_status(cluster)
        later = readiness.seconds_until_available(pods, daemon_set.spec.min_ready_seconds, now=cluster.now)
        waits = [seconds for seconds in (wait, later) if seconds is not None]
        return controller.After(min(waits)) if waits else None

    async def _claim(self, daemon_set: DaemonSet) -> list[pod.Pod]:
        selector = _selector(daemon_set)
        return await self._adopter.claim(
            daemon_set,
            (*self._members.owned(daemon_set), *self._members.orphans(daemon_set)),
            matches=lambda each: selector.matches(each.metadata.labels),
        )

    def _cluster(self, daemon_set: DaemonSet, pods: Sequence[pod.Pod], *, mark: str) -> rollout.Cluster:
        placement = daemonpods.Placement(daemon_set)
        by_node: dict[str, list[pod.Pod]] = {}
        for each in pods:
            is_over = podstate.has_ended(each) and each.metadata.deletion_timestamp is not None
            name = daemonpods.node_of(each)
            if name and not is_over:
                by_node.setdefault(name, []).append(each)
        fits = {each.metadata.name: placement.fit(each) for each in self._nodes}
        return rollout.Cluster(daemon_set, mark, by_node, fits, self._clock.utc())

    async def _manage(self, cluster: rollout.Cluster) -> float | None:
        """Create and delete pods. Return the seconds until a failed pod may be deleted, if one has to wait."""
        step, wait = rollout.Step([], []), None
        for name in sorted(cluster.fits):
            active, failed, seconds = self._classify_pods(cluster, name)
            plan_node = rollout.plan_node(cluster, name, active)
            step.nodes.extend(plan_node.nodes)
            step.pods.extend([*failed, *(each for each in plan_node.pods if each not in failed)])
            if seconds is not None:
                wait = seconds if wait is None else min(wait, seconds)
        # Pods for a deleted node can never be scheduled.
        step.pods.extend(
            each
            for name, node_pods in cluster.pods.items()
            if name not in cluster.fits
            for each in node_pods
            if not each.spec.node_name and each.metadata.deletion_timestamp is None
        )
        if not step.nodes and not step.pods and cluster.daemon_set.spec.update_strategy.type == rollout.ROLLING:
            step = rollout.update(cluster)
        owner, most = events.reference_to(cluster.daemon_set), podcontrol.MOST_AT_ONCE
        documents = [daemonpods.pod_document(cluster.daemon_set, name, mark=cluster.mark) for name in step.nodes[:most]]
        try:
            await self._control.create(owner, documents)
        finally:
            await self._control.delete(owner, step.pods[:most])
        return wait

    def _classify_pods(self, cluster: rollout.Cluster, name: str) -> tuple[list[pod.Pod], list[pod.Pod], float | None]:
        """Return the running pods of a node, the finished ones to delete, and the seconds until more may be deleted."""
        active: list[pod.Pod] = []
        finished: list[pod.Pod] = []
        wait = None
        if not cluster.fits[name].may_stay:
            return active, finished, wait
        for each in cluster.pods.get(name, ()):
            if each.metadata.deletion_timestamp is not None:
                continue
            if not podstate.has_ended(each):
                active.append(each)
            elif each.status.phase == "Succeeded":
                text = f"Found succeeded daemon pod {_on(each, name)}, will try to delete it"
                self._recorder.record(cluster.daemon_set, type=events.NORMAL, reason="SucceededDaemonPod", message=text)
                finished.append(each)
            else:
                key = (
                    cluster.daemon_set.metadata.uid,
                    int(cluster.daemon_set.status.observed_generation),
                    name,
                )
                seconds = self._failures.seconds_left(key, now=cluster.now)
                if seconds:
                    wait = seconds if wait is None else min(wait, seconds)
                    continue
                self._failures.note(key, now=cluster.now)
                text = f"Found failed daemon pod {_on(each, name)}, will try to kill it"
                self._recorder.record(cluster.daemon_set, type=events.WARNING, reason="FailedDaemonPod", message=text)
                finished.append(each)
        return active, finished, wait

    # History

    async def _current(
        self, daemon_set: DaemonSet, revisions: Sequence[history.Revision], pods: Sequence[pod.Pod]
    ) -> tuple[history.Revision, list[history.Revision]]:
        """Return the revision of the template, created or renumbered if necessary, and all other revisions."""
        data = history.content(daemon_set.spec.template)
        equal = [each for each in revisions if each.data == data]
        old = [each for each in revisions if each.data != data]
        number = history.newest(old) + 1
        if not equal:
            return await self._new_revision(daemon_set, data, number), old
        current = equal[-1]
        for each in equal[:-1]:
            await self._merge(daemon_set, each, target=current, pods=pods)
        if current.revision < number:
            current = await self._history.renumber(daemon_set, current, number)
        return current, old

    async def _new_revision(self, daemon_set: DaemonSet, data: dict[str, Any], number: int) -> history.Revision:
        template = daemon_set.spec.template
        collisions = daemon_set.status.collision_count or 0
        mark = podtemplates.template_hash(template, collisions)
        labels = (template.get("metadata") or {}).get("labels") or {}
        name = f"{daemon_set.metadata.name}-{mark}"
        created = await self._history.create(
            daemon_set, data, name=name, number=number, marks={**labels, history.HASH: mark}
        )
        if created is None:
            await self._patch_status(daemon_set, {"collisionCount": collisions + 1})
            raise errors.ReconcileError(f"daemon set {daemon_set.metadata.name}: revision {name} is another's")
        return created

    async def _merge(
        self, daemon_set: DaemonSet, double: history.Revision, *, target: history.Revision, pods: Sequence[pod.Pod]
    ) -> None:
        """Replace one of two revisions of the same content by the other."""
        before, mark = double.metadata.labels.get(history.HASH), target.metadata.labels[history.HASH]
        for each in pods:
            if each.metadata.labels.get(history.HASH) == before:
                content = {"metadata": {"labels": {history.HASH: mark}}}
                await self._client.patch(
                    pod.Pod,
                    each.metadata.name,
                    patch=patches.merge(content, patches.same(each)),
                    namespace=each.metadata.namespace,
                )
        await self._history.delete(double)

    async def _truncate(self, daemon_set: DaemonSet, old: Sequence[history.Revision], pods: Sequence[pod.Pod]) -> None:
        """Delete the oldest revisions that no pod has, beyond the history limit."""
        limit = daemon_set.spec.revision_history_limit
        if limit is None:
            return
        live = {each.metadata.labels.get(history.HASH) for each in pods}
        surplus = max(len(old) - limit, 0)
        idle = [each for each in old if each.metadata.labels.get(history.HASH) not in live]
        for each in idle[:surplus]:
            await self._history.delete(each)

    # Status

    async def _write_status(self, cluster: rollout.Cluster) -> None:
        daemon_set = cluster.daemon_set
        content = _status(cluster)
        before = daemon_set.status
        current = {
            "desiredNumberScheduled": before.desired_number_scheduled,
            "currentNumberScheduled": before.current_number_scheduled,
            "numberMisscheduled": before.number_misscheduled,
            "numberReady": before.number_ready,
            "updatedNumberScheduled": before.updated_number_scheduled,
            "numberAvailable": before.number_available,
            "numberUnavailable": before.number_unavailable,
            "observedGeneration": before.observed_generation,
        }
        if content == current:
            return
        await self._patch_status(
            daemon_set,
            {field: None if field in _OMITTED_IF_ZERO and not value else value for field, value in content.items()},
        )

    async def _patch_status(self, daemon_set: DaemonSet, content: dict[str, Any]) -> None:
        try:
            await self._writer.update_status(daemon_set, content)
        except errors.ObjectNotFoundError:
            return


def _status(cluster: rollout.Cluster) -> dict[str, int]:
    """Return the counts of a status."""
    current = misplaced = ready = updated = available = 0
    for name, fit in cluster.fits.items():
        node_pods = sorted(cluster.pods.get(name, ()), key=rollout.order)
        if not node_pods:
            continue
        if not fit.should_run:
            misplaced += 1
            continue
        current += 1
        ready += readiness.is_ready(node_pods[0])
        available += cluster.is_available(node_pods[0])
        updated += cluster.is_updated(node_pods[0])
    return {
        "desiredNumberScheduled": cluster.desired,
        "currentNumberScheduled": current,
        "numberMisscheduled": misplaced,
        "numberReady": ready,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": cluster.desired - available,
        "observedGeneration": int(cluster.daemon_set.metadata.generation),
    }


def _on(pod: pod.Pod, name: str) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name} on node {name}"


def _selector(daemon_set: DaemonSet) -> labels.Selector:
    return labelselectors.of(daemon_set.spec.selector)
