"""Compiled claims: the requests of a claim, with everything computed that does not depend on devices.

Called once per claim; the allocator remembers the result. Nothing is refused here. What is wrong with a request is
kept as a text, because upstream looks at requests one after the other and reports what it meets first, and that can
also be something about a class or a pool.
"""

from __future__ import annotations

from typing import Final

from drachma.allocator import attributes, screening
from drachma.allocator import features as gates
from drachma.api import deviceclass, devices, resourceclaim
from drachma.claims import identity

ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"
MAX_RESULTS: Final = 32

_Wish = resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest


class Alternative:
    """One way to satisfy a request: the request itself, or one of its subrequests."""

    __slots__ = (
        "_class",
        "_shape",
        "admin_access",
        "capacity",
        "class_name",
        "count",
        "derived",
        "everything",
        "full_name",
        "late_problem",
        "name",
        "problem",
        "request_name",
        "selectors",
        "tolerations",
    )

    def __init__(self, claim_label: str, request: resourceclaim.DeviceRequest, wish: _Wish | None) -> None:
        """``wish`` is one of the request's own; None for a request of a type that is not known."""
        is_sub = isinstance(wish, resourceclaim.DeviceSubRequest)
        self.request_name = str(request.name)
        self.name = str(wish.name) if isinstance(wish, resourceclaim.DeviceSubRequest) else self.request_name
        self.full_name = f"{self.request_name}/{self.name}" if is_sub else self.request_name
        wish = wish or resourceclaim.ExactDeviceRequest()
        self.admin_access = isinstance(wish, resourceclaim.ExactDeviceRequest) and bool(wish.admin_access)
        self.capacity = wish.capacity
        self.class_name = str(wish.device_class_name)
        self.count = max(int(wish.count), 0)
        self.derived = {str(entry.name): str(entry.expression) for entry in wish.derived_attributes}
        self.everything = wish.allocation_mode == ALL
        self.selectors: tuple[devices.DeviceSelector, ...] = wish.selectors
        self.tolerations: tuple[devices.DeviceToleration, ...] = wish.tolerations
        self.problem = ""
        """Error that is reported before its class is looked up."""
        self.late_problem = ""
        """Error that is reported after its class is looked up."""
        if wish.allocation_mode not in (ALL, EXACT_COUNT):
            self.late_problem = (
                f"claim {claim_label}, request {self.name}: unsupported count mode {wish.allocation_mode}"
            )
        self._class: deviceclass.DeviceClass | None = None
        self._shape: screening.RequestShape | None = None

    def shape(self, device_class: deviceclass.DeviceClass, screener: screening.Screener) -> screening.RequestShape:
        """Return the screening of devices for this alternative of a class."""
        if self._shape is None or self._class is not device_class:
            self._class = device_class
            self._shape = screener.shape(
                device_class, self.selectors, capacity=self.capacity, tolerations=self.tolerations
            )
        return self._shape


class Request:
    """A request: one alternative, or several in the order of preference."""

    __slots__ = ("alternatives", "first_available", "name", "problem")

    def __init__(self, claim_label: str, request: resourceclaim.DeviceRequest, features: gates.Features) -> None:
        self.name = str(request.name)
        self.first_available = bool(request.first_available)
        wishes: tuple[_Wish | None, ...] = request.first_available or (request.exactly,)
        self.alternatives = tuple(Alternative(claim_label, request, wish) for wish in wishes)
        self.problem = _request_problem(claim_label, request, features)
        for alternative, wish in zip(self.alternatives, wishes, strict=True):
            alternative.problem = _alternative_problem(claim_label, alternative, wish=wish, features=features)


class Constraint:
    """Attribute that the devices of some requests must share, or must differ in."""

    __slots__ = ("_requests", "attribute", "distinct")

    def __init__(self, constraint: resourceclaim.DeviceConstraint) -> None:
        self._requests = frozenset(constraint.requests)
        self.distinct = constraint.match_attribute is None
        self.attribute = str(constraint.match_attribute or constraint.distinct_attribute or "")

    def covers(self, alternative: Alternative) -> bool:
        """Return True if the constraint names no request, this request, or this subrequest."""
        names = self._requests
        return not names or alternative.request_name in names or alternative.full_name in names


class Claim:
    """A claim that wants to be allocated."""

    __slots__ = ("config", "constraints", "label", "late_problem", "metadata", "name", "requests", "spec", "start")

    def __init__(self, claim: resourceclaim.ResourceClaim, features: gates.Features) -> None:
        spec = claim.spec.devices
        self.metadata = claim.metadata
        self.spec = claim.spec
        self.name = str(claim.metadata.name)
        self.label = identity.label(claim.metadata)
        self.requests = tuple(Request(self.label, request, features) for request in spec.requests)
        self.late_problem = _constraints_problem(self.label, spec.constraints)
        """Error that is reported after all its requests."""
        self.constraints = () if self.late_problem else tuple(map(Constraint, spec.constraints))
        self.start = tuple(
            attributes.NO_ELEMENTS if entry.distinct else attributes.ALL_ELEMENTS for entry in self.constraints
        )
        """Constraint state before the first device: see :mod:`drachma.allocator.constraint`."""
        self.config = spec.config


def _request_problem(label: str, request: resourceclaim.DeviceRequest, features: gates.Features) -> str:
    if request.first_available and not features.prioritized_list:
        return f"claim {label}, request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
    if features.consumable_capacity:
        return ""
    disabled = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        return f"claim {label}, request {request.name}: {disabled}"
    for subrequest in request.first_available:
        if subrequest.capacity is not None:
            return f"claim {label}, subrequest {subrequest.name}: {disabled}"
    return ""


def _alternative_problem(label: str, way: Alternative, *, wish: _Wish | None, features: gates.Features) -> str:
    subject = f"claim {label}, request {way.name}"
    if way.derived and not features.derived_attributes:
        return f"{subject}: cannot handle request with derived attributes, the feature is disabled"
    for number, selector in enumerate(way.selectors):
        if selector.cel is None:
            return f"{subject}, selector #{number}: CEL expression empty (unsupported selector type?)"
    if (
        not features.admin_access
        and isinstance(wish, resourceclaim.ExactDeviceRequest)
        and wish.admin_access is not None
    ):
        return f"{subject}: admin access is requested, but the feature is disabled"
    if not way.class_name:
        return f"{subject}: missing device class name (unsupported request type?)"
    return ""


def _constraints_problem(label: str, constraints: tuple[resourceclaim.DeviceConstraint, ...]) -> str:
    for number, constraint in enumerate(constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            return f"claim {label}, constraint #{number}: empty constraint (unsupported constraint type?)"
    return ""
