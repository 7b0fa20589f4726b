"""Workloads over time as a document: kind SimulatedWorkload of ``drachma.dev/v1``, and its schema."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from drachma import errors

API_VERSION: Final = "drachma.dev/v1"
KIND: Final = "SimulatedWorkload"

Duration = str | float
"""Seconds, or a text such as ``1h30m``."""
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    pass


class _Tagged(_Part, frozen=True, kw_only=True, tag_field="process"):
    pass


class Poisson(_Tagged, frozen=True, kw_only=True, tag="poisson"):
    """Independent arrivals at a mean rate."""

    every: Duration
    """Mean time between arrivals."""
    count: _Count | None = None


class Fixed(_Tagged, frozen=True, kw_only=True, tag="fixed"):
    """Arrivals at equal distances."""

    every: Duration
    first: Duration = 0.0
    count: _Count | None = None
    batch: _Count = 1
    """Jobs that arrive at once each time."""


class At(_Tagged, frozen=True, kw_only=True, tag="at"):
    """Arrivals at given times."""

    times: tuple[Duration, ...]


class Constant(_Part, frozen=True, kw_only=True, tag="constant", tag_field="distribution"):
    """Always the same value."""

    value: Duration


class Uniform(_Part, frozen=True, kw_only=True, tag="uniform", tag_field="distribution"):
    """Any value between two."""

    least: Duration
    most: Duration


class Exponential(_Part, frozen=True, kw_only=True, tag="exponential", tag_field="distribution"):
    """Many short values, few long ones."""

    mean: Duration


class LogNormal(_Part, frozen=True, kw_only=True, tag="lognormal", tag_field="distribution"):
    """Values around a median; half are shorter. ``sigma`` 1 makes one in six longer than 2.7 times the median."""

    median: Duration
    sigma: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0


class Choice(_Part, frozen=True, kw_only=True, tag="choice", tag_field="distribution"):
    """Random choice between several values."""

    values: tuple[Duration, ...]
    weights: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] = ()


Distribution = Constant | Uniform | Exponential | LogNormal | Choice


class PodCounts(_Part, frozen=True, kw_only=True):
    """Numbers of pods of a job, and how often each occurs."""

    values: tuple[_Count, ...]
    weights: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] = ()


class JobClass(_Part, frozen=True, kw_only=True):
    """Jobs of one kind."""

    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$")]
    arrivals: Poisson | Fixed | At
    runtime: Distribution | None = None
    """Running time of each pod; without it, pods run until the end."""
    pods: _Count | PodCounts = 1
    namespace: str = "default"
    queue: str = ""
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] | None = None
    gang: bool = False
    template: Mapping[str, Any]
    """Pod template: metadata with labels, and spec."""


_EVENT_FIELDS: Final = {
    "fail": "fail", "fail_devices": "failDevices", "maintain": "maintain", "apply": "apply", "remove": "remove",
}  # fmt: skip


class ScheduledEvent(_Part, frozen=True, kw_only=True):
    """Change of the cluster at a time: exactly one of fail, failDevices, maintain, apply and remove."""

    at: Duration
    fail: tuple[str, ...] = ()
    """Nodes that fail."""
    fail_devices: tuple[str, ...] = ()
    """Devices that fail, each as ``node/device``."""
    maintain: tuple[str, ...] = ()
    """Nodes that are drained."""
    lasting: Duration | None = None
    """Time until the nodes or devices return; without it, they never do."""
    every: Duration | None = None
    """Time after which an outage happens again, such as a weekly maintenance window."""
    apply: tuple[Mapping[str, Any], ...] = ()
    remove: tuple[Mapping[str, Any], ...] = ()


class RandomFailures(_Part, frozen=True, kw_only=True):
    """Random failures of every node, or of every device."""

    mean_time_between: Duration
    mean_time_to_repair: Duration


class WorkloadSpec(_Part, frozen=True, kw_only=True):
    """Jobs and events over time."""

    duration: Duration
    """Time after which no job arrives."""
    jobs: Annotated[tuple[JobClass, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    events: tuple[ScheduledEvent, ...] = ()
    failures: RandomFailures | None = None
    """Failures of nodes."""
    device_failures: RandomFailures | None = None


class _Metadata(_Part, frozen=True, kw_only=True):
    name: str = ""


class SimulatedWorkload(_Part, frozen=True, kw_only=True):
    """Workload over time."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: _Metadata = _Metadata()
    spec: WorkloadSpec


def is_workload(document: Mapping[str, Any]) -> bool:
    """Return True if a document is of this kind."""
    return document.get("kind") == KIND and document.get("apiVersion") == API_VERSION


def decode(document: Mapping[str, Any]) -> WorkloadSpec:
    """Return the workload of a document. Raises DecodeError with the path of the first field that is wrong."""
    try:
        spec = msgspec.convert(document, SimulatedWorkload).spec
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"SimulatedWorkload: {error}") from None
    names = [each.name for each in spec.jobs]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise errors.DecodeError(f"SimulatedWorkload: spec.jobs[{number}].name {name!r}: another class has it")
    for number, event in enumerate(spec.events):
        kinds = [name for field, name in _EVENT_FIELDS.items() if getattr(event, field)]
        if len(kinds) != 1:
            raise errors.DecodeError(
                f"SimulatedWorkload: spec.events[{number}]: must have exactly one of "
                f"{', '.join(_EVENT_FIELDS.values())}, not {' and '.join(kinds) or 'none'}"
            )
        if event.every is not None and (kinds[0] in ("apply", "remove") or event.lasting is None):
            raise errors.DecodeError(
                f"SimulatedWorkload: spec.events[{number}].every: needs lasting, and fail, failDevices or maintain"
            )
    return spec


def schema() -> dict[str, Any]:
    """Return the JSON schema of the kind."""
    return msgspec.json.schema(SimulatedWorkload)


def check_weights(values: Sequence[object], weights: Sequence[float], *, title: str) -> None:
    """Raise InvalidValueError unless there are values, and as many weights or none."""
    if not values:
        raise errors.InvalidValueError(f"{title}: values must not be empty")
    if weights and len(weights) != len(values):
        raise errors.InvalidValueError(f"{title}: {len(weights)} weights for {len(values)} values")
    if not math.isfinite(sum(weights)):
        raise errors.InvalidValueError(
            f"{title}: weights {', '.join(map(str, weights))}: must be finite, with their sum"
        )
