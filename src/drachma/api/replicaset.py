"""ReplicaSet: so many pods of one template. A partial view; the template is kept as it is written."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class ReplicaSetSpec(Struct, frozen=True, kw_only=True):
    """How many pods, which ones, and what they look like."""

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
    """How many pods there are, as sets and their predecessor, the ReplicationController, both tell."""

    replicas: Int32 = ABSENT_INT
    fully_labeled_replicas: Int32 = ABSENT_INT
    ready_replicas: Int32 = ABSENT_INT
    available_replicas: Int32 = ABSENT_INT
    observed_generation: Int64 = ABSENT_INT
    conditions: tuple[ReplicaSetCondition, ...] = ABSENT_TUPLE


class ReplicaSetStatus(ReplicaCounts, frozen=True, kw_only=True):
    """How many pods there are, those included that are on their way out."""

    terminating_replicas: Int32 | None = None


class ReplicaSet(meta.Object, frozen=True, kw_only=True):
    """``apps`` ReplicaSet, namespaced; a partial view."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()
