"""The controller: has a pod on every node that suits it, replaces them by those of a new template, keeps the status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import daemonset, labelselectors, meta, node, pod
from drachma.claims import podstate
from drachma.client import patches
from drachma.controllers import statuswrites
from drachma.controllers.daemonset import daemonpods, failures, rollout
from drachma.controllers.workload import (
    adoption,
    expectations,
    history,
    members,
    podcontrol,
    readiness,
    templatehashes,
)
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
        self._nodes: Final = nodes.cache
        self._expected: Final = expectations.Expectations(pods)
        self._adopter: Final = adoption.Adopter(surroundings.client, pod.Pod, expected=self._expected)
        self._control: Final = podcontrol.PodControl(
            surroundings.client, expected=self._expected, recorder=self._recorder
        )
        self._history: Final = history.History(surroundings)
        self._failures: Final = failures.Failures()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        sets.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new), deleted=self._forget))
        self._members: Final = members.Members(
            pods, self._sets, kind=DaemonSet, selector=_selector, concern=self._queue.add
        )
        nodes.add_handler(informer.Handler(added=self._see_node, updated=self._see_node_change, deleted=self._see_node))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _see(self, of: DaemonSet) -> None:
        self._queue.add(cache.key_of(of))

    def _forget(self, of: DaemonSet) -> None:
        uid = of.metadata.uid
        self._expected.forget(uid)
        self._history.forget(uid)
        self._failures.forget(uid)

    def _see_node(self, _: node.Node) -> None:
        for each in self._sets:
            self._see(each)

    def _see_node_change(self, old: node.Node, new: node.Node) -> None:
        """Heartbeats change nothing for daemons; labels and taints do."""
        if (old.metadata.labels, old.spec) != (new.metadata.labels, new.spec):
            self._see_node(new)

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.After | controller.Again | None:
        wanted = self._sets.get(key.name, namespace=key.namespace)
        if wanted is None or wanted.metadata.deletion_timestamp is not None:
            return None
        if wanted.spec.selector == meta.LabelSelector():
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.record(wanted, type=events.WARNING, reason="SelectingAll", message=text)
            return None
        uid = wanted.metadata.uid
        if not self._history.is_up_to_date(uid) or not self._expected.are_met(uid):
            return controller.AGAIN
        pods = await self._claim(wanted)
        revisions = await self._history.of(wanted, _selector(wanted))
        current, old = await self._current(wanted, revisions, pods)
        cluster = self._cluster(wanted, pods, mark=current.metadata.labels[history.HASH])
        try:
            wait = await self._manage(cluster)
            await self._truncate(wanted, old, pods)
        finally:
            await self._write_status(cluster)
        later = readiness.until_available(pods, wanted.spec.min_ready_seconds, now=cluster.now)
        waits = [seconds for seconds in (wait, later) if seconds is not None]
        return controller.After(min(waits)) if waits else None

    async def _claim(self, wanted: DaemonSet) -> list[pod.Pod]:
        selector = _selector(wanted)
        return await self._adopter.claim(
            wanted,
            (*self._members.owned(wanted), *self._members.orphans(wanted)),
            matches=lambda each: selector.matches(each.metadata.labels),
        )

    def _cluster(self, wanted: DaemonSet, pods: Sequence[pod.Pod], *, mark: str) -> rollout.Cluster:
        placement = daemonpods.Placement(wanted)
        by_node: dict[str, list[pod.Pod]] = {}
        for each in pods:
            is_over = podstate.has_ended(each) and each.metadata.deletion_timestamp is not None
            name = daemonpods.node_of(each)
            if name and not is_over:
                by_node.setdefault(name, []).append(each)
        fits = {each.metadata.name: placement.fit(each) for each in self._nodes}
        return rollout.Cluster(wanted, mark, by_node, fits, self._clock.utc())

    async def _manage(self, cluster: rollout.Cluster) -> float | None:
        """Makes and deletes pods; after how many seconds a failed one may be deleted, if one has to wait."""
        step, wait = rollout.Step([], []), None
        for name in sorted(cluster.fits):
            running, failed, seconds = self._sorted_out(cluster, name)
            on_node = rollout.on_node(cluster, name, running)
            step.nodes.extend(on_node.nodes)
            step.pods.extend([*failed, *(each for each in on_node.pods if each not in failed)])
            if seconds is not None:
                wait = seconds if wait is None else min(wait, seconds)
        # Pods that wait for a node which is gone will never get there.
        step.pods.extend(
            each
            for name, known in cluster.pods.items()
            if name not in cluster.fits
            for each in known
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

    def _sorted_out(self, cluster: rollout.Cluster, name: str) -> tuple[list[pod.Pod], list[pod.Pod], float | None]:
        """The pods on a node that run, those that have ended and are to go, and how long others have to wait."""
        running: list[pod.Pod] = []
        gone: list[pod.Pod] = []
        wait = None
        if not cluster.fits[name].may_stay:
            return running, gone, wait
        for each in cluster.pods.get(name, ()):
            if each.metadata.deletion_timestamp is not None:
                continue
            if not podstate.has_ended(each):
                running.append(each)
            elif each.status.phase == "Succeeded":
                text = f"Found succeeded daemon pod {_on(each, name)}, will try to delete it"
                self._recorder.record(cluster.daemon_set, type=events.NORMAL, reason="SucceededDaemonPod", message=text)
                gone.append(each)
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
                gone.append(each)
        return running, gone, wait

    # History

    async def _current(
        self, wanted: DaemonSet, revisions: Sequence[history.Revision], pods: Sequence[pod.Pod]
    ) -> tuple[history.Revision, list[history.Revision]]:
        """The revision of the template, made or given a new number where that is due, and all others."""
        data = history.content(wanted.spec.template)
        equal = [each for each in revisions if each.data == data]
        old = [each for each in revisions if each.data != data]
        number = history.newest(old) + 1
        if not equal:
            return await self._new_revision(wanted, data, number), old
        current = equal[-1]
        for each in equal[:-1]:
            await self._merge(wanted, each, into=current, pods=pods)
        if current.revision < number:
            current = await self._history.renumber(wanted, current, number)
        return current, old

    async def _new_revision(self, wanted: DaemonSet, data: dict[str, Any], number: int) -> history.Revision:
        template = wanted.spec.template
        collisions = wanted.status.collision_count or 0
        mark = templatehashes.template_hash(template, collisions)
        labels = (template.get("metadata") or {}).get("labels") or {}
        name = f"{wanted.metadata.name}-{mark}"
        made = await self._history.create(wanted, data, name=name, number=number, marks={**labels, history.HASH: mark})
        if made is None:
            await self._patch_status(wanted, {"collisionCount": collisions + 1})
            raise errors.ReconcileError(f"daemon set {wanted.metadata.name}: revision {name} is another's")
        return made

    async def _merge(
        self, wanted: DaemonSet, double: history.Revision, *, into: history.Revision, pods: Sequence[pod.Pod]
    ) -> None:
        """Has one revision where there are two of the same content."""
        before, mark = double.metadata.labels.get(history.HASH), into.metadata.labels[history.HASH]
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

    async def _truncate(self, wanted: DaemonSet, old: Sequence[history.Revision], pods: Sequence[pod.Pod]) -> None:
        """Forgets the oldest revisions that no pod is of, and that are more than are to be kept."""
        limit = wanted.spec.revision_history_limit
        if limit is None:
            return
        live = {each.metadata.labels.get(history.HASH) for each in pods}
        surplus = max(len(old) - limit, 0)
        idle = [each for each in old if each.metadata.labels.get(history.HASH) not in live]
        for each in idle[:surplus]:
            await self._history.delete(each)

    # Status

    async def _write_status(self, cluster: rollout.Cluster) -> None:
        wanted = cluster.daemon_set
        content = _status(cluster)
        before = wanted.status
        stored = {
            "desiredNumberScheduled": before.desired_number_scheduled,
            "currentNumberScheduled": before.current_number_scheduled,
            "numberMisscheduled": before.number_misscheduled,
            "numberReady": before.number_ready,
            "updatedNumberScheduled": before.updated_number_scheduled,
            "numberAvailable": before.number_available,
            "numberUnavailable": before.number_unavailable,
            "observedGeneration": before.observed_generation,
        }
        if content == stored:
            return
        await self._patch_status(
            wanted,
            {field: None if field in _OMITTED_IF_ZERO and not value else value for field, value in content.items()},
        )

    async def _patch_status(self, wanted: DaemonSet, content: dict[str, Any]) -> None:
        try:
            meant = patches.same(wanted)
            await statuswrites.update(self._client, DaemonSet, of=wanted.metadata, content=content, meant=meant)
        except errors.ObjectNotFoundError:
            return


def _status(cluster: rollout.Cluster) -> dict[str, int]:
    """The numbers that a status has."""
    current = misplaced = ready = updated = available = 0
    for name, fit in cluster.fits.items():
        known = sorted(cluster.pods.get(name, ()), key=rollout.order)
        if not known:
            continue
        if not fit.should_run:
            misplaced += 1
            continue
        current += 1
        ready += readiness.is_ready(known[0])
        available += cluster.is_available(known[0])
        updated += cluster.is_updated(known[0])
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


def _on(of: pod.Pod, name: str) -> str:
    return f"{of.metadata.namespace}/{of.metadata.name} on node {name}"


def _selector(of: DaemonSet) -> labels.Selector:
    return labelselectors.of(of.spec.selector)
