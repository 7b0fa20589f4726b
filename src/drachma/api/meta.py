"""Object metadata and the other structs that all Kubernetes kinds share."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Int64, Struct

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time as Kubernetes writes it (RFC 3339 with a zone)."""

_encode = msgspec.json.Encoder().encode


def time_text(moment: datetime) -> str:
    """Return a time in UTC as objects write it, to the second."""
    return time_bytes(moment).decode()


def time_bytes(moment: datetime) -> bytes:
    """Return a time in UTC as the JSON of objects has it, to the second."""
    # msgspec writes times twenty times as fast as datetime does.
    return _encode(moment)[1:20] + b"Z"


MicroTime = str
"""A time with exactly six fractional digits, kept as text."""


def micro_time_text(moment: datetime) -> MicroTime:
    """Return a time in UTC as leases and audit events write it, to the microsecond."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


Opaque = Any
"""JSON that drachma stores and never reads; it has no unknown fields."""


class OwnerReference(Struct, frozen=True, kw_only=True):
    """Owner of an object; garbage collection and claim generation follow it."""

    api_version: str = ZERO_TEXT
    kind: str = ZERO_TEXT
    name: str = ZERO_TEXT
    uid: str = ZERO_TEXT
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Struct, frozen=True, kw_only=True):
    """Fields that a manager owns, for server-side apply."""

    manager: str = ABSENT_TEXT
    operation: str = ABSENT_TEXT
    api_version: str = ABSENT_TEXT
    time: Time | None = None
    fields_type: str = ABSENT_TEXT
    fields_v1: Opaque = None
    subresource: str = ABSENT_TEXT


class ObjectMeta(Struct, frozen=True, kw_only=True):
    """``metadata`` of every object."""

    name: str = ABSENT_TEXT
    generate_name: str = ABSENT_TEXT
    namespace: str = ABSENT_TEXT
    self_link: str = ABSENT_TEXT
    uid: str = ABSENT_TEXT
    resource_version: str = ABSENT_TEXT
    generation: Int64 = ABSENT_INT
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = ABSENT_MAP
    annotations: Mapping[str, str] = ABSENT_MAP
    owner_references: tuple[OwnerReference, ...] = ABSENT_TUPLE
    finalizers: tuple[str, ...] = ABSENT_TUPLE
    managed_fields: tuple[ManagedFieldsEntry, ...] = ABSENT_TUPLE


ABSENT_META = ObjectMeta()


class Object(Struct, frozen=True, kw_only=True):
    """An API object. Its Python type is its kind; the codec writes apiVersion and kind."""

    metadata: ObjectMeta = ABSENT_META


class Condition(Struct, frozen=True, kw_only=True):
    """One observed aspect of an object's state."""

    type: str = ZERO_TEXT
    status: str = ZERO_TEXT
    observed_generation: Int64 = ABSENT_INT
    last_transition_time: Time | None = None
    reason: str = ZERO_TEXT
    message: str = ZERO_TEXT


class LabelSelectorRequirement(Struct, frozen=True, kw_only=True):
    """One expression of a label selector."""

    key: str = ZERO_TEXT
    operator: str = ZERO_TEXT
    values: tuple[str, ...] = ABSENT_TUPLE


class LabelSelector(Struct, frozen=True, kw_only=True):
    """A label selector in its struct form; all parts must hold."""

    match_labels: Mapping[str, str] = ABSENT_MAP
    match_expressions: tuple[LabelSelectorRequirement, ...] = ABSENT_TUPLE
