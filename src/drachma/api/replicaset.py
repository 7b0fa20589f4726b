"""ReplicaSet: a number of pods of one template. A partial view; the template stays a document."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class ReplicaSetSpec(Struct, frozen=True, kw_only=True):
    """Number, selector and template of the pods."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = ABSENT_INT
    selector: meta.LabelSelector | None = None
    template: Mapping[str, Any] = ABSENT_MAP


class ReplicaSetCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the set's state."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class ReplicaCounts(Struct, frozen=True, kw_only=True):
    """Numbers of pods, in the status of replica sets and replication controllers."""

    replicas: Int32 = ABSENT_INT
    fully_labeled_replicas: Int32 = ABSENT_INT
    ready_replicas: Int32 = ABSENT_INT
    available_replicas: Int32 = ABSENT_INT
    observed_generation: Int64 = ABSENT_INT
    conditions: tuple[ReplicaSetCondition, ...] = ABSENT_TUPLE


class ReplicaSetStatus(ReplicaCounts, frozen=True, kw_only=True):
    """Numbers of pods, including terminating ones."""

    terminating_replicas: Int32 | None = None


class ReplicaSet(meta.Object, frozen=True, kw_only=True):
    """``apps`` ReplicaSet, namespaced; a partial view."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()
