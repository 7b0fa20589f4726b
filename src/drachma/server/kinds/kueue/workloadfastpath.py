"""Fast path for workloads, of which there are thousands that differ in names, messages and times only.

Rules of the definition and of queueing compare the names of queues before and after a change, and nothing more. No rule
concerns the messages of conditions.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma.api.struct import Struct
from drachma.server.kinds.apiextensions import customresource
from drachma.server.surface.strategy import Marks, Write
from drachma.values import names

_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""Label with the uid of the job of a workload."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class _Condition(Struct, frozen=True, kw_only=True):
    message: str = ""
    last_transition_time: str = ""


class _Admission(Struct, frozen=True, kw_only=True):
    cluster_queue: str = ""


class _Status(Struct, frozen=True, kw_only=True):
    admission: _Admission | None = None
    conditions: tuple[_Condition, ...] | None = None


class _Owner(Struct, frozen=True, kw_only=True):
    name: str = ""
    uid: str = ""


class _Metadata(Struct, frozen=True, kw_only=True):
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[_Owner, ...] = ()


class _Spec(Struct, frozen=True, kw_only=True):
    queue_name: str = ""


class _Request(Struct, frozen=True, kw_only=True):
    """The parts of a new workload, or of a merge patch, that have marks."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _ConditionMarks(NamedTuple):
    messages: tuple[str, ...]
    times: tuple[str, ...]


_decode: Final = msgspec.json.Decoder(_Request).decode


class WorkloadFastPath(customresource.CustomFastPath):
    """Fast path that shares decisions about workloads."""

    repeats_bodies = True
    repeats_patches = True

    def mark_body(self, name: str, body: bytes, write: Write) -> Marks | None:
        request = self._read(body, write)
        if request is None or request.status != _Status():
            return None
        origin = _mark_origin(request)
        return None if origin is None else Marks((name, *origin))

    def mark_patch(self, body: bytes, write: Write) -> Marks | None:
        request = self._read(body, write)
        conditions = None if request is None else _mark_conditions(request.status.conditions or ())
        if request is None or conditions is None:
            return None
        own, admission = request.metadata, request.status.admission
        marks = filter(None, (own.uid, admission.cluster_queue if admission is not None else ""))
        versions = (own.resource_version,) if own.resource_version else ()
        return Marks(tuple(marks), conditions.messages, versions, conditions.times)

    def mark_stored(self, document: Mapping[str, Any]) -> Marks | None:
        if not self._custom.is_current(document):
            return None
        try:
            stored = msgspec.convert(document, _Request)
        except msgspec.ValidationError:
            return None
        origin, conditions = _mark_origin(stored), _mark_conditions(stored.status.conditions or ())
        if origin is None or conditions is None:
            return None
        own, admission = document["metadata"], stored.status.admission
        if admission is not None and admission.cluster_queue:
            origin = (*origin, admission.cluster_queue)
        versions = (own["resourceVersion"],)
        return Marks((own["name"], own["uid"], *origin), conditions.messages, versions, conditions.times)

    def _read(self, body: bytes, write: Write) -> _Request | None:
        """Return the marked parts of a request, or None if it needs a conversion or is malformed."""
        if write.version != self._custom.definition.storage.name:
            return None
        try:
            return _decode(body)
        except msgspec.DecodeError:
            return None


def _mark_origin(request: _Request) -> tuple[str, ...] | None:
    """Return the names of queue and owner, or None if a rule may depend on more than their form."""
    owners = request.metadata.owner_references
    job_uid = request.metadata.labels.get(_JOB_UID, "")
    if len(owners) > 1 or len(job_uid) > names.LABEL_LENGTH:
        # Managers of several owners are sorted by uid.
        return None
    marks = [request.spec.queue_name, job_uid]
    for owner in owners:
        marks += owner.name, owner.uid
    return tuple(filter(None, marks))


def _mark_conditions(conditions: Iterable[_Condition]) -> _ConditionMarks | None:
    """Return messages and times of conditions, or None if a time has another form than the API server writes."""
    times = [each.last_transition_time for each in conditions if each.last_transition_time]
    if not all(map(_TIME.fullmatch, times)):
        return None
    return _ConditionMarks(tuple([each.message for each in conditions if each.message]), tuple(times))
