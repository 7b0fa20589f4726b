"""What is decided otherwise than Kueue decides it: the document ``config.drachma.dev/v1``, kind QueueingPolicy.

It stands beside Kueue's configuration and not in it, so that Kueue still reads its own. Each field is a choice of its
own; the first of each is what Kueue does, and holds where the document or the field is absent.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.validation import fielderror
from drachma.validation.path import Path

API_VERSION: Final = "config.drachma.dev/v1"
KIND: Final = "QueueingPolicy"


class FirstAvailable(enum.StrEnum):
    """Requests with a list of alternatives (KEP-4816)."""

    REFUSED = "Refused"
    ENVELOPE = "Envelope"
    """Charged with the most that any alternative takes of each resource, and settled."""


class AllDevices(enum.StrEnum):
    """Requests for all devices that match."""

    REFUSED = "Refused"
    WORST_CASE = "WorstCase"
    """Charged with what one claim could get at most, and settled."""


class AdminAccess(enum.StrEnum):
    """Requests that only watch devices which others use: never charged."""

    CHECKED = "Checked"
    """Where they have selectors, devices that match must exist."""
    FREE = "Free"
    """They are not looked at."""


class NamedClaims(enum.StrEnum):
    """Claims that pods use by their name."""

    REFUSED = "Refused"
    SHARED = "Shared"
    """Charged once in a cluster queue, however many use them."""


class NodeAllocatable(enum.StrEnum):
    """The cpu, memory and huge pages that devices stand for or need (KEP-5517)."""

    IGNORED = "Ignored"
    CHARGED = "Charged"


class Feasibility(enum.StrEnum):
    """Whether pods that get quota must find nodes with devices for them."""

    IGNORED = "Ignored"
    REQUIRED = "Required"


class Templates(enum.StrEnum):
    """Whether claims must be made from the very template that was counted."""

    FLOATING = "Floating"
    PINNED = "Pinned"


class Sidecars(enum.StrEnum):
    """Extended resources of init containers that go on running."""

    ORDINARY = "Ordinary"
    """As of any init container: the largest counts."""
    CHARGED = "Charged"
    """As they run: beside each other and beside the containers."""


class QueueingPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All choices."""

    first_available: FirstAvailable = FirstAvailable.REFUSED
    all_devices: AllDevices = AllDevices.REFUSED
    admin_access: AdminAccess = AdminAccess.CHECKED
    named_claims: NamedClaims = NamedClaims.REFUSED
    node_allocatable: NodeAllocatable = NodeAllocatable.IGNORED
    feasibility: Feasibility = Feasibility.IGNORED
    templates: Templates = Templates.FLOATING
    sidecars: Sidecars = Sidecars.ORDINARY

    @property
    def bounds_requests(self) -> bool:
        """Whether something is charged before it is known, and settled afterwards."""
        return (
            self.first_available is FirstAvailable.ENVELOPE
            or self.all_devices is AllDevices.WORST_CASE
            or self.node_allocatable is NodeAllocatable.CHARGED
        )


AS_KUEUE: Final = QueueingPolicy()

_CHOICES: Final[Mapping[str, type[enum.StrEnum]]] = {
    field.encode_name: field.type for field in msgspec.structs.fields(QueueingPolicy)
}


def is_policy(document: Mapping[str, Any]) -> bool:
    """Whether a document is a policy, in a version that may or may not be known here."""
    return document.get("kind") == KIND


def read(document: Mapping[str, Any]) -> QueueingPolicy | tuple[fielderror.FieldError, ...]:
    """The policy of a document, or all that is wrong with it."""
    problems = []
    version = document.get("apiVersion")
    if version != API_VERSION:
        problems.append(fielderror.not_supported(Path("apiVersion"), version, [API_VERSION]))
    choices = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
    for name, value in choices.items():
        kind = _CHOICES.get(name)
        if kind is None:
            problems.append(
                fielderror.forbidden(Path(name), f"there is no such field, there are {', '.join(_CHOICES)}")
            )
        elif value not in tuple(kind):
            problems.append(fielderror.not_supported(Path(name), value, sorted(kind)))
    return tuple(problems) if problems else msgspec.convert(choices, QueueingPolicy)
