"""PodDisruptionBudget: limit on voluntary disruptions of pods. A partial view."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TUPLE, ZERO_INT, Int32, Int64, Struct

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
"""Condition that is true if a pod may be evicted."""

SUFFICIENT_PODS: Final = "SufficientPods"
INSUFFICIENT_PODS: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"

ALWAYS_ALLOW: Final = "AlwaysAllow"
"""Policy that always allows the eviction of pods that are not ready."""


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True):
    """Selector of the pods, and the number or percentage that must stay or may go."""

    min_available: Int32 | str | None = None
    selector: meta.LabelSelector | None = None
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True):
    """Numbers of pods, and of allowed disruptions."""

    observed_generation: Int64 = ABSENT_INT
    disrupted_pods: Mapping[str, meta.Time] = ABSENT_MAP
    disruptions_allowed: Int32 = ZERO_INT
    current_healthy: Int32 = ZERO_INT
    desired_healthy: Int32 = ZERO_INT
    expected_pods: Int32 = ZERO_INT
    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class PodDisruptionBudget(meta.Object, frozen=True, kw_only=True):
    """``policy`` PodDisruptionBudget, namespaced; a partial view."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
