"""PodDisruptionBudget: how many pods of a kind may be missing because somebody wants them gone. A partial view."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TUPLE, ZERO_INT, Int32, Int64, Struct

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
"""The condition that says whether a pod may go."""

SUFFICIENT_PODS: Final = "SufficientPods"
INSUFFICIENT_PODS: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"

ALWAYS_ALLOW: Final = "AlwaysAllow"
"""The policy that lets pods go which are not ready, whatever the rest of the budget says."""


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True):
    """Which pods, and how many of them must stay or may go: a number, or a text such as ``50%``."""

    min_available: Int32 | str | None = None
    selector: meta.LabelSelector | None = None
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True):
    """How many pods there are, and how many of them may go now."""

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
