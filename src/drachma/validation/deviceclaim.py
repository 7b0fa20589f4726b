"""Rules for the requests, constraints and configuration of claims, templates and classes, and for DeviceClass."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import structs

from drachma.api import deviceclass, devices, resourceclaim
from drachma.api import gates as feature
from drachma.claims import identity
from drachma.validation import (
    expression,
    fielderror,
    formats,
    limits,
    metadata,
    nodeallocatable,
    rendering,
    rulenotation,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import SPEC, Path
from drachma.values import names

_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

CLASS_NAME_ORIGIN: Final = "format=k8s-long-name"
"""Origin of the declared rule for names."""


class RequestNames(msgspec.Struct, frozen=True):
    """The names by which a claim's requests can be referred to: ``request`` and ``request/subrequest``."""

    subrequests: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, claim: resourceclaim.DeviceClaim) -> "RequestNames":
        """Return the names of the requests of a claim."""
        return cls({request.name: frozenset(sub.name for sub in request.first_available) for request in claim.requests})

    def check(self, name: str, at: Path) -> Found:
        """Return the errors of a reference to a request."""
        if name in self.subrequests and "/" not in name:
            return formats.short_name(name, at)
        segments = name.split("/")
        if len(segments) > 2:
            return [fielderror.invalid(at, name, _UNKNOWN_REQUEST)]
        errors: list[FieldError] = []
        for segment in segments:
            errors += formats.short_name(segment, at)
        request, *sub = segments
        if request not in self.subrequests or not self.subrequests[request].issuperset(sub):
            errors.append(fielderror.invalid(at, name, _UNKNOWN_REQUEST))
        return errors


class _ConstrainedAttributes(msgspec.Struct, frozen=True):
    """Attributes that constraints name, by request; the empty name stands for all requests."""

    by_request: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, constraints: Iterable[resourceclaim.DeviceConstraint]) -> "_ConstrainedAttributes":
        errors: dict[str, set[str]] = {}
        for constraint in constraints:
            attributes = constraint.match_attribute, constraint.distinct_attribute
            attribute = next((name for name in attributes if name is not None), None)
            if attribute is not None:
                for request in constraint.requests or ("",):
                    errors.setdefault(request, set()).add(attribute)
        return cls({request: frozenset(attributes) for request, attributes in errors.items()})

    def has(self, attribute: str, request: str) -> bool:
        """Return True if a constraint on the request, on its parent or on all requests names the attribute."""
        parent = request.partition("/")[0]
        return any(attribute in self.by_request.get(name, ()) for name in ("", request, parent))


class Facts(msgspec.Struct, frozen=True):
    """Facts about a claim or a class that the rules for its parts need.

    ``request`` names the request that a part belongs to, and ``devices`` are allocated. ``is_stored`` says that the
    part has not changed. ``costs`` receives the costs of derived attributes, whose sum is limited.
    """

    context: Context
    requests: RequestNames = RequestNames({})
    constrained: _ConstrainedAttributes = _ConstrainedAttributes({})
    request: str = ""
    devices: frozenset[identity.SharedDeviceID] = frozenset()
    is_stored: bool = False
    costs: list[int] = []

    def request_facts(self, name: str) -> "Facts":
        """Return the facts for the parts of a request."""
        return structs.replace(self, request=name)


def check(claim: resourceclaim.DeviceClaim, at: Path, context: Context) -> Found:
    """Return the errors of a new claim or template."""
    constrained = _ConstrainedAttributes.of(claim.constraints)
    return TYPES["DeviceClaim"](claim, at, Facts(context, RequestNames.of(claim), constrained))


# Requests


def _check_request(request: resourceclaim.DeviceRequest, at: Path, facts: Facts) -> Found:
    return TYPES["NamedRequest"](request, at, facts.request_facts(request.name))


def _check_subrequest(request: resourceclaim.DeviceSubRequest, at: Path, facts: Facts) -> Found:
    return TYPES["Alternative"](request, at, facts.request_facts(f"{facts.request}/{request.name}"))


def _selector_expression(text: str, at: Path, facts: Facts) -> Found:
    return expression.check_selector(text, at, gates=facts.context.gates)


def _attribute_in_use(name: str, at: Path, facts: Facts) -> Errors:
    if not facts.constrained.has(name, facts.request):
        detail = (
            "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
        )
        yield fielderror.invalid(at, rendering.named(name), detail)


def _derived_expression(text: str, at: Path, facts: Facts) -> Errors:
    errors, cost = expression.check_derived(text, at, gates=facts.context.gates)
    facts.costs.append(cost)
    yield from errors


def _is_too_complex(claim: resourceclaim.DeviceClaim, facts: Facts) -> bool:
    return sum(facts.costs) > limits.DERIVED_ATTRIBUTES_COST


# Constraints and configuration


def check_request_name(name: str, at: Path, facts: Facts) -> Found:
    """Return the errors of a reference to a request."""
    return facts.requests.check(name, at)


def _attribute_name(name: str, at: Path) -> Found:
    return fielderror.covered(formats.fully_qualified_name(name, at), origin="format=k8s-resource-fully-qualified-name")


def _allows_distinct(constraint: resourceclaim.DeviceConstraint, facts: Facts) -> bool:
    return facts.context.gates.on(feature.Gate.CONSUMABLE_CAPACITY)


def _check_parameters(config: devices.OpaqueDeviceConfiguration, at: Path, facts: Facts) -> Errors:
    place, limit = at.child("parameters"), limits.OPAQUE_BYTES
    return formats.json_object(config.parameters, place, context=facts.context, limit=limit, is_stored=facts.is_stored)


TYPES: Final = rulenotation.load_structs("deviceclaim", globals())


def check_class(class_: deviceclass.DeviceClass, context: Context) -> Errors:
    """Yield the errors of a new class."""
    yield from _class_spec(class_.spec, old=None, context=context)


def check_class_update(class_: deviceclass.DeviceClass, old: deviceclass.DeviceClass, context: Context) -> Errors:
    """Yield the errors of a changed class; unchanged selectors and configuration may have errors."""
    yield from metadata.check_name(class_.metadata, metadata.declared_dns_subdomain, name_origin=CLASS_NAME_ORIGIN)
    yield from metadata.check_finalizer_names(class_.metadata)
    yield from _class_spec(class_.spec, old=old.spec, context=context)


def _class_spec(
    spec: deviceclass.DeviceClassSpec, *, old: deviceclass.DeviceClassSpec | None, context: Context
) -> Errors:
    selectors = Facts(context, is_stored=old is not None and old.selectors == spec.selectors)
    yield from TYPES["ClassSelectors"](spec, SPEC, selectors)
    config = Facts(context, is_stored=old is not None and old.config == spec.config)
    yield from TYPES["ClassConfiguration"](spec, SPEC, config)
    own_policies = spec.node_allocatable_resource_accounting_policies
    if own_policies and (old is None or old.node_allocatable_resource_accounting_policies != own_policies):
        yield from nodeallocatable.check_policies(own_policies, SPEC.child("nodeAllocatableResourceAccountingPolicies"))
    name = spec.extended_resource_name
    if name is not None and names.extended_resource_name(name):
        at, detail = SPEC.child("extendedResourceName"), "must be a valid extended resource name"
        error = fielderror.invalid(at, name, detail, origin="format=k8s-extended-resource-name")
        yield from fielderror.covered([error])
