"""Rows: the few facts about pods, claims and devices that pages filter and show, made once per change of an object."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Final

import msgspec

from drachma.api import pod, resourceclaim, resourceslice
from drachma.claims import conditions, identity, podclaims
from drachma.runtime.cache import Key

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_MODEL_ATTRIBUTES: Final = ("productName", "product", "model", "profile", "deviceType", "type", "kind")
"""Names, without a domain, of attributes that drivers use for the model of a device."""


class PodStatus(enum.StrEnum):
    """State of a pod in one word."""

    PENDING = "Pending"
    GATED = "Gated"
    STARTING = "Starting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TERMINATING = "Terminating"


_RANKS: Final = {status: number for number, status in enumerate(PodStatus)}


class ClaimState(enum.StrEnum):
    """State of a claim in one word."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    RESERVED = "reserved"
    DELETED = "deleted"


class DeviceState(enum.StrEnum):
    """State of a device in one word. The order is that of the device map's numbers."""

    FREE = "free"
    USED = "used"
    SHARED = "shared"
    RESERVED = "reserved"
    """Allocated to a claim that no pod uses."""
    BLOCKED = "blocked"
    """Free, and other partitions have taken counters that it needs."""
    TAINTED = "tainted"
    UNHEALTHY = "unhealthy"


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pod."""

    key: Key
    status: PodStatus
    node: str
    reason: str
    """Why it waits or failed, in one line."""
    created: dt.datetime | None
    scheduled: dt.datetime | None
    claims: tuple[str, ...]
    queue: str
    priority: int
    rank: str
    """Text that sorts pods by status, then by namespace and name."""

    @property
    def waits(self) -> bool:
        """True if the pod has no node and could get one."""
        return self.status in (PodStatus.PENDING, PodStatus.GATED)


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One claim."""

    key: Key
    state: ClaimState
    created: dt.datetime | None
    allocated: dt.datetime | None
    devices: tuple[identity.DeviceID, ...]
    classes: tuple[str, ...]
    pods: tuple[str, ...]
    deleted: dt.datetime | None


class DeviceCell(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the newest generation of its pool."""

    id: identity.DeviceID
    node: str
    """Name of its node; empty for devices that several nodes can use."""
    state: DeviceState
    share: float
    """Used share of its capacity."""
    model: str
    group: str
    """Counter set that it draws from: the physical device around its partitions."""
    size: float
    """Share of the counter set that it draws; the whole device has 1."""
    claims: tuple[Key, ...]
    pods: tuple[Key, ...]
    classes: tuple[str, ...]
    problem: str
    """Taint or fault."""


def pod_row(subject: pod.Pod) -> PodRow:
    """Return the row of a pod."""
    key = Key(subject.metadata.namespace, subject.metadata.name)
    status = _pod_status(subject)
    scheduled = conditions.find(subject.status.conditions, "PodScheduled")
    is_scheduled = scheduled is not None and scheduled.status == "True"
    return PodRow(
        key=key,
        status=status,
        node=subject.spec.node_name,
        reason=_pod_reason(subject, scheduled),
        created=subject.metadata.creation_timestamp,
        scheduled=scheduled.last_transition_time if scheduled is not None and is_scheduled else None,
        claims=tuple(podclaims.all_names(subject)),
        queue=subject.metadata.labels.get(QUEUE_LABEL, ""),
        priority=int(subject.spec.priority or 0),
        rank=f"{_RANKS[status]} {key}",
    )


def _pod_status(subject: pod.Pod) -> PodStatus:
    if subject.metadata.deletion_timestamp is not None:
        return PodStatus.TERMINATING
    if subject.status.phase in ("Running", "Succeeded", "Failed"):
        return PodStatus(subject.status.phase)
    if subject.spec.node_name:
        return PodStatus.STARTING
    return PodStatus.GATED if subject.spec.scheduling_gates else PodStatus.PENDING


def _pod_reason(subject: pod.Pod, scheduled: pod.PodCondition | None) -> str:
    if subject.spec.node_name:
        return subject.status.message or subject.status.reason
    if subject.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in subject.spec.scheduling_gates)
        return f"waits for its scheduling gates: {gates}"
    if scheduled is not None and scheduled.message:
        return scheduled.message
    return "no scheduler has reported on it yet"


def claim_row(subject: resourceclaim.ResourceClaim) -> ClaimRow:
    """Return the row of a claim."""
    allocation = subject.status.allocation
    state = ClaimState.PENDING
    if subject.metadata.deletion_timestamp is not None:
        state = ClaimState.DELETED
    elif allocation is not None:
        state = ClaimState.RESERVED if subject.status.reserved_for else ClaimState.ALLOCATED
    return ClaimRow(
        key=Key(subject.metadata.namespace, subject.metadata.name),
        state=state,
        created=subject.metadata.creation_timestamp,
        allocated=allocation.allocation_timestamp if allocation is not None else None,
        devices=tuple(map(identity.device_of, allocation.devices.results)) if allocation is not None else (),
        classes=tuple(sorted(_classes(subject))),
        pods=tuple(each.name for each in subject.status.reserved_for if each.resource == "pods"),
        deleted=subject.metadata.deletion_timestamp,
    )


def _classes(subject: resourceclaim.ResourceClaim) -> set[str]:
    names = set()
    for request in subject.spec.devices.requests:
        if request.exactly is not None:
            names.add(request.exactly.device_class_name)
        names |= {each.device_class_name for each in request.first_available}
    return names


def attribute_text(attribute: resourceslice.DeviceAttribute) -> str:
    """Return the value of an attribute for people."""
    for value in (attribute.string_value, attribute.version_value, attribute.int_value):
        if value is not None:
            return str(value)
    if attribute.bool_value is not None:
        return str(attribute.bool_value).lower()
    values = (*attribute.string_values, *attribute.int_values, *attribute.bool_values, *attribute.version_values)
    return ", ".join(map(str, values))


def model_of(device: resourceslice.Device) -> str:
    """Return the model of a device: the attribute that drivers commonly have for it, or an empty text."""
    short = {name.rpartition("/")[2]: value for name, value in device.attributes.items()}
    for name in _MODEL_ATTRIBUTES:
        if name in short:
            return attribute_text(short[name])
    return ""
