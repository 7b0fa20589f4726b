"""Whole clusters from files: manifests or dumps of a server, and node groups.

Pods without a uid are completed as a server would complete them. On request, so are pods that do not exist yet: those
of new workloads, of suspended Jobs, and of queued Workloads. Objects of kinds that placing pods does not depend on are
ignored. Unreadable objects, objects that a server would refuse, and objects given twice are problems, reported with
their place.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import codec, defaults, gates, meta, pod, podgroup, resourcequota, scheme
from drachma.claims import identity
from drachma.offline import manifestfiles, objectfiles, workloadpods
from drachma.simulate import ClusterState, NodeGroup, nodegroup
from drachma.simulate.clusterstate import KINDS

if TYPE_CHECKING:
    from drachma.offline import queueingfiles

_PRIORITY_CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
_QUOTA: Final = ("v1", "ResourceQuota")
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class ClusterFiles(NamedTuple):
    """Content of files. If there are problems, the rest must not be used."""

    state: ClusterState
    groups: tuple[NodeGroup, ...]
    problems: tuple[str, ...]
    held: Mapping[str, str] = {}
    """Workloads whose pods do not come because they get no quota, with the reasons."""
    quotas: tuple[resourcequota.ResourceQuota, ...] = ()
    """Quotas of namespaces."""
    queueing: tuple[meta.Object, ...] = ()
    """Objects that admission depends on, if they were asked for."""


class QueueHolds(NamedTuple):
    """Workloads that get no quota, with the reasons, by namespace/name; and the local queues that exist."""

    workloads: Mapping[str, str]
    local_queues: frozenset[str]

    def reason(self, document: Mapping[str, Any]) -> str:
        """Return why a queued Workload or a suspended Job gets no pods; empty if it does."""
        from drachma.queueing.jobs.settings import QUEUE_LABEL

        _, namespace, name = workloadpods.identity(document)
        if workloadpods.is_queued(document):
            return self.workloads.get(f"{namespace}/{name}", "")
        queue = ((document.get("metadata") or {}).get("labels") or {}).get(QUEUE_LABEL)
        missing = queue is not None and f"{namespace}/{queue}" not in self.local_queues
        return f"local queue {namespace}/{queue} does not exist" if missing else ""


def find_holds(objects: Sequence[meta.Object], now: dt.datetime) -> QueueHolds:
    """Return the workloads that queues hold back, with the objects that admission depends on."""
    from drachma.simulate import queueingstate

    state = queueingstate.QueueingState(objects, now)
    return QueueHolds(state.admit_all(), state.local_queues)


def read(
    paths: list[str], *, enabled: gates.Gates = gates.ALL, expects_pods: bool = False, with_queues: bool = False
) -> ClusterFiles:
    """Return the cluster in files and folders.

    With ``expects_pods``, pods that do not exist yet are included; ``with_queues``, objects of queueing as well.
    """
    reader = _Reader(enabled)
    reader.files.read(paths, reader.take)
    if expects_pods:
        reader.expect_pods(reader.find_holds())
    cluster = reader.finish()
    if not with_queues or not reader.has_queueing:
        return cluster
    queueing = reader.read_queueing()
    problems = tuple(dict.fromkeys((*cluster.problems, *queueing.problems)))
    return cluster._replace(queueing=queueing.objects, problems=problems)


def expect(
    state: ClusterState,
    documents: Iterable[Mapping[str, Any]],
    *,
    holds: QueueHolds | None = None,
    enabled: gates.Gates = gates.ALL,
) -> ClusterFiles:
    """Return the cluster of a server, including pods that some of its documents would create.

    ``holds`` are the workloads that get no pods, if the server has queues.
    """
    reader = _Reader(enabled)
    for document in documents:
        reader.files.attempt(manifestfiles.Source(codec.title(document), dict(document)), reader.take)
    reader.expect_pods(holds)
    expected_pods = reader.finish()
    return expected_pods._replace(state=state.plus(expected_pods.state.objects))


class _Reader:
    def __init__(self, enabled: gates.Gates) -> None:
        self._gates = enabled
        self.files = objectfiles.ObjectFiles()
        self._objects: list[meta.Object] = []
        self._unseen: list[manifestfiles.Source] = []
        self._workloads: list[manifestfiles.Source] = []
        self._queued: list[manifestfiles.Source] = []
        self._groups: list[NodeGroup] = []
        self._quotas: list[resourcequota.ResourceQuota] = []
        self._priorities = dict(_SYSTEM_PRIORITIES)
        self._default_priority = 0
        self._sources: list[manifestfiles.Source] = []
        self._held: dict[str, str] = {}

    def find_holds(self) -> QueueHolds | None:
        """Return the workloads that queues in the files hold back, or None if the files have no queues."""
        if not any(_is_kueue(source) and source.kind in ("ClusterQueue", "LocalQueue") for source in self._sources):
            return None
        queueing = self.read_queueing()
        self.files.problems.extend(queueing.problems)
        return None if queueing.problems else find_holds(queueing.objects, self.files.now)

    @property
    def has_queueing(self) -> bool:
        """True if there is an object of Kueue's kinds. Others matter to admission only next to such objects."""
        return any(map(_is_kueue, self._sources))

    def read_queueing(self) -> queueingfiles.QueueingFiles:
        """Return the objects that admission depends on."""
        from drachma.offline import queueingfiles

        return queueingfiles.decode(self._sources)

    def take(self, source: manifestfiles.Source) -> None:
        self._sources.append(source)
        if not source.kind or not source.api_version:
            codec.type_meta(source.content)
        api_version, kind = source.api_version, source.kind
        if kind == "Workload" or (api_version, kind) in workloadpods.KINDS:
            self._take_owner(source)
        if nodegroup.is_node_group(api_version, kind):
            self.files.note(source, codec.title(source.content))
            self._groups.append(nodegroup.read(source.content))
        elif (api_version.partition("/")[0], kind) == _PRIORITY_CLASS:
            self._take_priority(source.content)
        elif (api_version, kind) == _QUOTA:
            quota = self._decoded(source)
            assert isinstance(quota, resourcequota.ResourceQuota), "it has the kind of quotas"
            self._quotas.append(quota)
        elif _is_relevant(api_version, kind):
            if kind == "Pod" and not source.has_uid():
                _, namespace, name = workloadpods.identity(source.content)
                self.files.note(source, f"{namespace}/{name}" if name else codec.title(source.content))
                self._unseen.append(source)
            else:
                self._objects.append(self._decoded(source))

    def _take_owner(self, source: manifestfiles.Source) -> None:
        """Keep a workload whose pods do not exist yet."""
        if source.kind == "Pod":
            return
        if workloadpods.is_queued(source.content):
            self._queued.append(source)
        elif workloadpods.lacks_pods(source.content):
            self._workloads.append(source)

    def _take_priority(self, document: Mapping[str, Any]) -> None:
        value = document.get("value", 0)
        if not isinstance(value, int):
            raise errors.DecodeError(f"{codec.title(document)}: value: expected a whole number")
        self._priorities[str((document.get("metadata") or {}).get("name"))] = value
        if document.get("globalDefault"):
            self._default_priority = value

    def _decoded(self, source: manifestfiles.Source) -> meta.Object:
        decoded = source.decode()
        accepted = self.files.accept(source, decoded, namespaced=scheme.of(type(decoded)).namespaced)
        return defaults.apply(accepted, now=self.files.now)

    def expect_pods(self, holds: QueueHolds | None) -> None:
        """Add pods that do not exist yet, without those of workloads that get no quota.

        A queued Workload replaces its owner.
        """
        covered = {owner for source in self._queued for owner in workloadpods.owners(source.content)}
        for source in (*self._queued, *self._workloads):
            document = source.content
            reason = (
                holds.reason(document) if holds is not None and workloadpods.identity(document) not in covered else ""
            )
            if reason:
                kind, namespace, name = workloadpods.identity(document)
                self._held[f"{kind.lower()} {namespace}/{name}"] = reason
                continue
            try:
                if workloadpods.is_queued(document):
                    pods = list(workloadpods.workload_pods(document))
                elif workloadpods.identity(document) in covered:
                    continue
                else:
                    pods = list(workloadpods.pods(document, nodes=0))
            except errors.DrachmaError as error:
                self.files.problems.append(f"{source.place}: {error}")
                continue
            self._unseen += [manifestfiles.Source(source.place, codec.encode(each)) for each in pods]

    def finish(self) -> ClusterFiles:
        if self._unseen:
            self._objects += self._completed_pods()
        self._objects = [
            self._resolve_priority(each) if isinstance(each, podgroup.PodGroup) else each for each in self._objects
        ]
        return ClusterFiles(
            ClusterState.of(self._objects),
            tuple(self._groups),
            tuple(self.files.problems),
            self._held,
            tuple(self._quotas),
        )

    def _completed_pods(self) -> list[meta.Object]:
        """Return the new pods as a server would store them, with the status that their documents have."""
        from drachma.server import status
        from drachma.server.kinds.core import podcompletion

        completer = podcompletion.PodCompleter(self._gates)
        pods: list[meta.Object] = []
        for source in self._unseen:
            try:
                spec_document = completer.complete(source.content, now=self.files.now)
            except status.StatusError as refusal:
                self.files.problems.append(f"{source.place}: {refusal.document['message']}")
                continue
            document = {**spec_document, "status": source.content.get("status") or {}}
            completed = defaults.apply(codec.decode(document), now=self.files.now)
            assert isinstance(completed, pod.Pod), "only pods are completed"
            pods.append(self._resolve_priority(completed))
        return pods

    def _resolve_priority(self, completed: pod.Pod | podgroup.PodGroup) -> meta.Object:
        spec = completed.spec
        if spec.priority is not None:
            return completed
        name = spec.priority_class_name
        if name and name not in self._priorities:
            kind, label = type(completed).__name__, identity.label(completed.metadata)
            self.files.problems.append(f"{kind} {label}: spec.priorityClassName: {name}: there is no such class")
        value = self._priorities.get(name, 0) if name else self._default_priority
        return structs.replace(completed, spec=structs.replace(spec, priority=value))


def _is_kueue(source: manifestfiles.Source) -> bool:
    return source.api_version.startswith("kueue.x-k8s.io/")


def _is_relevant(api_version: str, kind: str) -> bool:
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return (group, kind) in _relevant_kinds()


@functools.cache
def _relevant_kinds() -> frozenset[tuple[str, str]]:
    return frozenset((each.group, each.name) for each in map(scheme.of, KINDS))
