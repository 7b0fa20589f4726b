"""StatefulSet: pods with stable names and volumes. A partial view; templates stay documents."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class RollingUpdateStatefulSetStrategy(Struct, frozen=True, kw_only=True):
    """First ordinal to replace, and the number or percentage of pods that may be missing."""

    partition: Int32 | None = None
    max_unavailable: int | str | None = None


class StatefulSetUpdateStrategy(Struct, frozen=True, kw_only=True):
    """Strategy for replacing pods."""

    type: str = ABSENT_TEXT
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Struct, frozen=True, kw_only=True):
    """Retention of volume claims after the set is deleted or scaled down."""

    when_deleted: str = ABSENT_TEXT
    when_scaled: str = ABSENT_TEXT


class StatefulSetOrdinals(Struct, frozen=True, kw_only=True):
    """Ordinal of the first pod."""

    start: Int32 = ABSENT_INT


class StatefulSetSpec(Struct, frozen=True, kw_only=True):
    """Number, template, volumes and update strategy of the pods."""

    replicas: Int32 | None = None
    selector: meta.LabelSelector | None = None
    template: Mapping[str, Any] = ABSENT_MAP
    volume_claim_templates: tuple[Mapping[str, Any], ...] = ABSENT_TUPLE
    service_name: str = ABSENT_TEXT
    pod_management_policy: str = ABSENT_TEXT
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = ABSENT_INT
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the set's state."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class StatefulSetStatus(Struct, frozen=True, kw_only=True):
    """Progress of the set: numbers of pods, in total and by revision."""

    observed_generation: Int64 = ABSENT_INT
    replicas: Int32 = ABSENT_INT
    ready_replicas: Int32 = ABSENT_INT
    current_replicas: Int32 = ABSENT_INT
    updated_replicas: Int32 = ABSENT_INT
    current_revision: str = ABSENT_TEXT
    update_revision: str = ABSENT_TEXT
    collision_count: Int32 | None = None
    conditions: tuple[StatefulSetCondition, ...] = ABSENT_TUPLE
    available_replicas: Int32 = ABSENT_INT


class StatefulSet(meta.Object, frozen=True, kw_only=True):
    """``apps`` StatefulSet, namespaced; a partial view."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()
