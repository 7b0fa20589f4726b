"""Decisions that differ from Kueue: the document ``config.drachma.dev/v1``, kind QueueingPolicy.

It is separate from Kueue's configuration, so that Kueue can still read its own. Each field is an independent choice;
the first value of each is Kueue's behaviour, and the default.
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
    """Charge the largest amount of each resource over all alternatives, and settle later."""


class AllDevices(enum.StrEnum):
    """Requests for all matching devices."""

    REFUSED = "Refused"
    WORST_CASE = "WorstCase"
    """Charge the largest amount that one claim could get, and settle later."""


class AdminAccess(enum.StrEnum):
    """Requests with admin access, which are never charged."""

    CHECKED = "Checked"
    """If they have selectors, matching devices must exist."""
    FREE = "Free"
    """They are not checked."""


class NamedClaims(enum.StrEnum):
    """Claims that pods use by name."""

    REFUSED = "Refused"
    SHARED = "Shared"
    """Charge once in a cluster queue, for any number of users."""


class NodeAllocatable(enum.StrEnum):
    """The cpu, memory and huge pages that devices provide or need (KEP-5517)."""

    IGNORED = "Ignored"
    CHARGED = "Charged"


class Feasibility(enum.StrEnum):
    """Check that pods of admitted workloads find nodes with devices."""

    IGNORED = "Ignored"
    REQUIRED = "Required"


class Templates(enum.StrEnum):
    """Check that claims are created from the template that was counted."""

    FLOATING = "Floating"
    PINNED = "Pinned"


class Sidecars(enum.StrEnum):
    """Extended resources of sidecars."""

    ORDINARY = "Ordinary"
    """Like those of any init container: the largest counts."""
    CHARGED = "Charged"
    """As they run: in parallel with each other and with the containers."""


class ClassNames(enum.StrEnum):
    """Names of device classes in mappings."""

    LABELS = "Labels"
    """At most 63 characters after an optional prefix, so classes with longer names cannot be mapped."""
    SUBDOMAINS = "Subdomains"
    """Every name that a device class can have, of at most 253 characters (KEP-2941)."""


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
    class_names: ClassNames = ClassNames.LABELS

    @property
    def bounds_requests(self) -> bool:
        """True if requests are charged before their devices are known, and settled afterwards."""
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
    """Return True if a document is a policy, in any version."""
    return document.get("kind") == KIND


def read(document: Mapping[str, Any]) -> QueueingPolicy | tuple[fielderror.FieldError, ...]:
    """Return the policy of a document, or its problems."""
    problems = []
    version = document.get("apiVersion")
    if version != API_VERSION:
        problems.append(fielderror.not_supported(Path("apiVersion"), version, [API_VERSION]))
    choices = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
    for name, value in choices.items():
        kind = _CHOICES.get(name)
        if kind is None:
            problems.append(fielderror.forbidden(Path(name), f"unknown field, expected one of {', '.join(_CHOICES)}"))
        elif value not in tuple(kind):
            problems.append(fielderror.not_supported(Path(name), value, sorted(kind)))
    return tuple(problems) if problems else msgspec.convert(choices, QueueingPolicy)
