"""HorizontalPodAutoscaler: number of replicas of a workload by the resource usage of its pods. A partial view."""

from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE, ZERO_INT, ZERO_TEXT, Int32, Int64, Struct
from drachma.values import quantity

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"

UTILIZATION: Final = "Utilization"
"""Type of a target that is a percentage of the requests."""


class CrossVersionObjectReference(Struct, frozen=True, kw_only=True):
    """Reference to a workload in the same namespace."""

    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    api_version: str = ABSENT_TEXT


class MetricTarget(Struct, frozen=True, kw_only=True):
    """Target value of a metric: a percentage of requests, or an average over pods."""

    type: str = ZERO_TEXT
    value: quantity.Quantity | None = None
    average_value: quantity.Quantity | None = None
    average_utilization: Int32 | None = None


class ResourceMetricSource(Struct, frozen=True, kw_only=True):
    """A resource of pods, and its target."""

    name: str = ZERO_TEXT
    target: MetricTarget = MetricTarget()


class ContainerResourceMetricSource(ResourceMetricSource, frozen=True, kw_only=True):
    """A resource of one container of each pod, and its target."""

    container: str = ZERO_TEXT


class MetricSpec(Struct, frozen=True, kw_only=True):
    """A metric. Those that are not about resources are read as their type only."""

    type: str = ZERO_TEXT
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None


class ScalingPolicy(Struct, frozen=True, kw_only=True):
    """Largest change within a period: a number of pods, or a percentage of them."""

    type: str = ZERO_TEXT
    value: Int32 = ZERO_INT
    period_seconds: Int32 = ZERO_INT


class ScalingRules(Struct, frozen=True, kw_only=True):
    """Limits of changes in one direction."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: tuple[ScalingPolicy, ...] = ABSENT_TUPLE
    tolerance: quantity.Quantity | None = None


class Behavior(Struct, frozen=True, kw_only=True):
    """Limits of changes in both directions."""

    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(Struct, frozen=True, kw_only=True):
    """The workload, its bounds, and the metrics that decide between them."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = ZERO_INT
    metrics: tuple[MetricSpec, ...] = ABSENT_TUPLE
    behavior: Behavior | None = None


class HorizontalPodAutoscalerStatus(Struct, frozen=True, kw_only=True):
    """Numbers of replicas, and conditions that say what limits them."""

    observed_generation: Int64 = ABSENT_INT
    last_scale_time: meta.Time | None = None
    current_replicas: Int32 = ZERO_INT
    desired_replicas: Int32 = ZERO_INT
    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class HorizontalPodAutoscaler(meta.Object, frozen=True, kw_only=True):
    """``autoscaling`` HorizontalPodAutoscaler v2, namespaced; a partial view."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
