"""Recordings of a scheduler (``--record``) as workloads: the pods of its decisions, and the cluster that it saw first.

A pod arrives at its first decision, or at the beginning if it ran already. It runs from the decision that gave it a
node until it is gone or has ended; a recording has times of decisions only, so ends are as exact as decisions are
frequent. Claims that were generated for pods become claim templates.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import codec, meta, pod, resourceclaim, resourceclaimtemplate
from drachma.claims import podstate, wellknown
from drachma.scheduler.recording import recordlines
from drachma.simulate import recordingcluster
from drachma.simulate.timeline.events import Arrival, JobShape

_START: Final = b'{"line":"beginning"'


def is_recording(path: pathlib.Path) -> bool:
    """Return True if a file starts like a recording."""
    try:
        with path.open("rb") as file:
            return file.read(len(_START)) == _START
    except OSError:
        return False


class _RecordedPod:
    """Pod of a recording, with its times."""

    def __init__(self, first: pod.Pod, arrived: datetime | None) -> None:
        self.pod = first
        self.arrived = arrived
        """None if it was there at the beginning."""
        self.started: datetime | None = None
        self.ended: datetime | None = None


class RecordedWorkload:
    """Pods and cluster of one recording."""

    def __init__(self, path: pathlib.Path) -> None:
        """Read the recording. Raises InvalidValueError with the file and the line of a problem."""
        self._path: Final = path
        self._pods: Final[dict[str, _RecordedPod]] = {}
        self._uids: Final[dict[tuple[str, str], str]] = {}
        """Uids of pods that exist, by namespace and name."""
        self._gone: Final[list[str]] = []
        """Uids of pods that ended since the last decision."""
        self._cluster: Final[dict[tuple[str, str, str], meta.Object]] = {}
        self._templates: Final[dict[tuple[str, str], meta.Object]] = {}
        self._claims: Final[dict[tuple[str, str], resourceclaim.ResourceClaim]] = {}
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._shapes: Final[dict[object, JobShape]] = {}
        try:
            with path.open("rb") as file:
                for line in recordlines.decode(file):
                    self._take(line)
        except (OSError, errors.DrachmaError) as error:
            raise errors.InvalidValueError(f"{path}: {error}") from None
        self._end_pods(self._last)
        for each in self._pods.values():
            self._note_templates(each.pod)

    def objects(self) -> list[meta.Object]:
        """Return the cluster as it was before the first decision, and the templates of generated claims."""
        return [*self._cluster.values(), *self._templates.values()]

    def arrivals(self) -> Iterator[Arrival]:
        """Return the pods in the order of their arrival, as jobs of one pod."""
        begin = self._first
        if begin is None:
            return iter(())
        arrivals = []
        for number, each in enumerate(self._pods.values()):
            time = 0.0 if each.arrived is None else (each.arrived - begin).total_seconds()
            duration = None
            if each.ended is not None:
                duration = max((each.ended - (each.started or each.arrived or begin)).total_seconds(), 0.0)
            arrivals.append(
                Arrival(max(time, 0.0), f"{each.pod.metadata.name}-{number}", self._shape(each.pod), duration)
            )
        return iter(sorted(arrivals, key=lambda arrival: arrival.time))

    def _take(self, line: recordlines.Line | recordlines.Torn) -> None:
        match line:
            case recordlines.Object():
                self._note(codec.decode_json(bytes(line.object)))
            case recordlines.Gone(kind="Pod"):
                self._gone.append(self._uids.pop((line.namespace, line.name), ""))
            case recordlines.Decision():
                self._decide(line.time, [(recordingcluster.decode_pod(line.pod), bool(line.node))])
            case recordlines.Together():
                placed = {each.uid for each in line.members}
                pods = [recordingcluster.decode_pod(each) for each in line.pods]
                self._decide(line.time, [(each, each.metadata.uid in placed) for each in pods])
            case _:
                return

    def _note(self, changed: meta.Object) -> None:
        namespace, name = changed.metadata.namespace or "", str(changed.metadata.name)
        if isinstance(changed, pod.Pod):
            uid = changed.metadata.uid
            self._uids[namespace, name] = uid
            if podstate.has_ended(changed):
                self._gone.append(uid)
            elif self._first is None and changed.spec.node_name and uid not in self._pods:
                self._pods[uid] = _RecordedPod(changed, None)
            elif uid in self._pods:
                self._pods[uid].pod = changed
        elif isinstance(changed, resourceclaim.ResourceClaim):
            self._claims[namespace, name] = changed
            if self._first is None and wellknown.POD_CLAIM_ANNOTATION not in changed.metadata.annotations:
                claim = structs.replace(changed, status=resourceclaim.ResourceClaimStatus())
                self._cluster["ResourceClaim", namespace, name] = claim
        elif self._first is None:
            self._cluster[type(changed).__name__, namespace, name] = changed

    def _decide(self, time: datetime, pods: list[tuple[pod.Pod, bool]]) -> None:
        self._first = self._first or time
        if self._last is not None and time < self._last:
            raise errors.DecodeError(f"decision at {time}: is before {self._last}, the time of the one before")
        self._last = time
        self._end_pods(time)
        for decided, is_placed in pods:
            each = self._pods.setdefault(decided.metadata.uid, _RecordedPod(decided, time))
            if is_placed:
                each.started, each.ended = time, None

    def _end_pods(self, time: datetime | None) -> None:
        for uid in self._gone:
            if uid in self._pods and self._pods[uid].ended is None:
                self._pods[uid].ended = time
        self._gone.clear()

    def _note_templates(self, user: pod.Pod) -> None:
        names = {each.name: each.resource_claim_name for each in user.status.resource_claim_statuses}
        namespace = user.metadata.namespace or ""
        for each in user.spec.resource_claims:
            template = each.resource_claim_template_name
            claim = self._claims.get((namespace, names.get(each.name) or ""))
            if template and claim is not None and (namespace, template) not in self._templates:
                spec = resourceclaimtemplate.ResourceClaimTemplateSpec(spec=claim.spec)
                metadata = meta.ObjectMeta(name=template, namespace=namespace)
                self._templates[namespace, template] = resourceclaimtemplate.ResourceClaimTemplate(
                    metadata=metadata, spec=spec
                )

    def _shape(self, each: pod.Pod) -> JobShape:
        spec = structs.replace(each.spec, node_name="", priority=each.spec.priority or 0)
        key = codec.encode_part(spec), tuple(sorted(each.metadata.labels.items())), each.metadata.namespace
        shape = self._shapes.get(key)
        if shape is None:
            namespace = each.metadata.namespace or "default"
            shape = self._shapes[key] = JobShape(spec=spec, labels=each.metadata.labels, namespace=namespace)
        return shape
