"""DaemonSet: a pod on every node, or on some. A partial view; the template stays a document."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, Int32, Int64, Struct


class RollingUpdateDaemonSet(Struct, frozen=True, kw_only=True):
    """Numbers or percentages of nodes that may lack a pod, or have two."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DaemonSetUpdateStrategy(Struct, frozen=True, kw_only=True):
    """Strategy for replacing pods."""

    type: str = ABSENT_TEXT
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Struct, frozen=True, kw_only=True):
    """Selector, template and update strategy of the pods."""

    selector: meta.LabelSelector | None = None
    template: Mapping[str, Any] = ABSENT_MAP
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: Int32 = ABSENT_INT
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(Struct, frozen=True, kw_only=True):
    """Numbers of nodes by the state of their pods."""

    current_number_scheduled: Int32 = ABSENT_INT
    number_misscheduled: Int32 = ABSENT_INT
    desired_number_scheduled: Int32 = ABSENT_INT
    number_ready: Int32 = ABSENT_INT
    observed_generation: Int64 = ABSENT_INT
    updated_number_scheduled: Int32 = ABSENT_INT
    number_available: Int32 = ABSENT_INT
    number_unavailable: Int32 = ABSENT_INT
    collision_count: Int32 | None = None


class DaemonSet(meta.Object, frozen=True, kw_only=True):
    """``apps`` DaemonSet, namespaced; a partial view."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()
