"""Decisions that differ from Kueue: the document ``config.drachma.dev/v1``, kind QueueingPolicy.

It is separate from Kueue's configuration, so that Kueue can still read its own. Each field is an independent choice;
the first value of each is Kueue's behaviour, and the default. Quotas for selected devices are a list, empty by default.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import cel
from drachma.api import devices
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import names

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


class SelectedDevices(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Quota for the devices that a CEL expression selects, in addition to the quota of their class (KEP-2941)."""

    name: str
    """Resource of the quota. A selected device counts as one of it."""
    device_class_names: tuple[str, ...]
    device_selector: devices.DeviceSelector

    @property
    def expression(self) -> str:
        return "" if self.device_selector.cel is None else self.device_selector.cel.expression


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
    selected_devices: tuple[SelectedDevices, ...] = ()

    @property
    def bounds_requests(self) -> bool:
        """True if requests are charged before their devices are known, and settled afterwards."""
        return (
            self.first_available is FirstAvailable.ENVELOPE
            or self.all_devices is AllDevices.WORST_CASE
            or self.node_allocatable is NodeAllocatable.CHARGED
            or bool(self.selected_devices)
        )

    def selections(self, device_class: str) -> tuple[SelectedDevices, ...]:
        """Return the quotas that devices of a class may count for."""
        return tuple(each for each in self.selected_devices if device_class in each.device_class_names)


AS_KUEUE: Final = QueueingPolicy()

_SELECTED_DEVICES: Final = "selectedDevices"
_CHOICES: Final[Mapping[str, type[enum.StrEnum]]] = {
    field.encode_name: field.type
    for field in msgspec.structs.fields(QueueingPolicy)
    if field.encode_name != _SELECTED_DEVICES
}
_FIELDS: Final = (*_CHOICES, _SELECTED_DEVICES)
_MOST_SELECTIONS: Final = 16
_MOST_CLASSES: Final = 8
_PROGRAMS: Final = cel.device_programs(
    consumable_capacity=False, list_type_attributes=False, expressions=cel.Expressions.STORED_IN_1_36
)


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
        if name == _SELECTED_DEVICES:
            problems += _check_selections(value, Path(name))
        elif kind is None:
            problems.append(fielderror.forbidden(Path(name), f"unknown field, expected one of {', '.join(_FIELDS)}"))
        elif value not in tuple(kind):
            problems.append(fielderror.not_supported(Path(name), value, sorted(kind)))
    return tuple(problems) if problems else msgspec.convert(choices, QueueingPolicy)


def _check_selections(value: Any, at: Path) -> fielderror.Errors:
    try:
        selections = msgspec.convert(value, tuple[SelectedDevices, ...])
    except msgspec.ValidationError as error:
        yield fielderror.invalid(at, value, str(error))
        return
    if len(selections) > _MOST_SELECTIONS:
        yield fielderror.too_many(at, len(selections), _MOST_SELECTIONS)
    earlier_names: set[str] = set()
    for position, each in enumerate(selections):
        here = at.item(position)
        yield from fielderror.problems(here.child("name"), each.name, names.qualified_name(each.name))
        if each.name in earlier_names:
            yield fielderror.duplicate(here.child("name"), each.name)
        earlier_names.add(each.name)
        classes = here.child("deviceClassNames")
        if not each.device_class_names:
            yield fielderror.required(classes, "at least one device class name is required")
        if len(each.device_class_names) > _MOST_CLASSES:
            yield fielderror.too_many(classes, len(each.device_class_names), _MOST_CLASSES)
        for number, name in enumerate(each.device_class_names):
            yield from fielderror.problems(classes.item(number), name, names.dns1123_subdomain(name))
        expression = here.child("deviceSelector", "cel", "expression")
        try:
            _PROGRAMS.selector(each.expression)
        except cel.CompilationError as error:
            yield fielderror.invalid(expression, each.expression, f"compilation failed: {error}")
