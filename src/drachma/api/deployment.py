"""Deployment: pods of one template with rolling updates. A partial view; the template stays a document."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class RollingUpdateDeployment(Struct, frozen=True, kw_only=True):
    """Numbers or percentages of pods that may be missing or in excess."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DeploymentStrategy(Struct, frozen=True, kw_only=True):
    """Strategy for replacing pods."""

    type: str = ABSENT_TEXT
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Struct, frozen=True, kw_only=True):
    """Number, selector, template and update strategy of the pods."""

    replicas: Int32 | None = None
    selector: meta.LabelSelector | None = None
    template: Mapping[str, Any] = ABSENT_MAP
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Int32 = ABSENT_INT
    revision_history_limit: Int32 | None = None
    paused: bool | None = None
    progress_deadline_seconds: Int32 | None = None


class DeploymentCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the deployment's state."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT
    last_update_time: meta.Time | None = None
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class DeploymentStatus(Struct, frozen=True, kw_only=True):
    """Progress of the deployment."""

    observed_generation: Int64 = ABSENT_INT
    replicas: Int32 = ABSENT_INT
    updated_replicas: Int32 = ABSENT_INT
    ready_replicas: Int32 = ABSENT_INT
    available_replicas: Int32 = ABSENT_INT
    unavailable_replicas: Int32 = ABSENT_INT
    terminating_replicas: Int32 | None = None
    collision_count: Int32 | None = None
    conditions: tuple[DeploymentCondition, ...] = ABSENT_TUPLE


class Deployment(meta.Object, frozen=True, kw_only=True):
    """``apps`` Deployment, namespaced; a partial view."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()
