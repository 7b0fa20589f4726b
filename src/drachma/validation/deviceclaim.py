"""Rules for the requests, constraints and configuration of claims and templates."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import devices, resourceclaim
from drachma.api import gates as feature
from drachma.validation import collection, expression, fielderror, formats, limits, rendering, rulenotation, taints
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import Path


def check_opaque(
    config: devices.OpaqueDeviceConfiguration | None, at: Path, *, context: Context, is_stored: bool = False
) -> Errors:
    """A configuration must be there, name a driver, and be a JSON object that is not too long."""
    if config is None:
        yield fielderror.required(at.child("opaque"))
        return
    below = at.child("opaque")
    yield from fielderror.covered(formats.driver_name(config.driver, below.child("driver")))
    parameters = below.child("parameters")
    yield from formats.json_object(
        config.parameters, parameters, context=context, limit=limits.OPAQUE_BYTES, is_stored=is_stored
    )


_Request = resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest
_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"


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

    def check_all(self, references: tuple[str, ...], at: Path) -> Found:
        """Return the errors of references to requests, each at most once."""
        return collection.check_set(
            references,
            self.check,
            at=at,
            key=str,
            limit=limits.REQUESTS,
            size_covered=True,
            unique_covered=True,
        )


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


def check(claim: resourceclaim.DeviceClaim, at: Path, context: Context) -> Errors:
    """Yield the errors of the requests of a new claim or template."""
    rules = _RequestRules(context.gates, _ConstrainedAttributes.of(claim.constraints))
    yield from collection.check_set(
        claim.requests,
        rules.check,
        at=at.child("requests"),
        key=lambda request: request.name,
        limit=limits.REQUESTS,
        size_covered=True,
        unique_covered=True,
    )
    yield from _TYPES["DeviceClaim"](claim, at, Facts(RequestNames.of(claim), context))
    if rules.derived_cost > limits.DERIVED_ATTRIBUTES_COST:
        detail = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
        yield fielderror.forbidden(at, detail)


class _RequestRules:
    """Rules for requests, which together may spend only so much on derived attributes."""

    def __init__(self, gates: feature.Gates, constrained: _ConstrainedAttributes) -> None:
        self.derived_cost = 0
        self._gates = gates
        self._constrained = constrained

    def check(self, request: resourceclaim.DeviceRequest, at: Path) -> Errors:
        yield from formats.short_name(request.name, at.child("name"))
        if request.exactly is not None and request.first_available:
            yield fielderror.invalid(at, None, f"{_ONE_KIND}, but multiple fields are set")
        elif request.first_available:
            yield from collection.check_set(
                request.first_available,
                lambda sub, path: self._subrequest(sub, path, parent=request.name),
                at=at.child("firstAvailable"),
                key=lambda sub: sub.name,
                limit=limits.FIRST_AVAILABLE,
                size_covered=True,
                unique_covered=True,
            )
        elif request.exactly is not None:
            below = at.child("exactly")
            yield from formats.class_name(request.exactly.device_class_name, below.child("deviceClassName"))
            yield from self._alternative(request.exactly, below, name=request.name)
        else:
            yield fielderror.required(at, _ONE_KIND)

    def _subrequest(self, sub: resourceclaim.DeviceSubRequest, at: Path, *, parent: str) -> Errors:
        yield from formats.short_name(sub.name, at.child("name"))
        class_name = at.child("deviceClassName")
        yield from fielderror.covered(formats.class_name(sub.device_class_name, class_name))
        yield from self._alternative(sub, at, name=f"{parent}/{sub.name}")

    def _alternative(self, request: _Request, at: Path, *, name: str) -> Errors:
        yield from check_selectors(request.selectors, at.child("selectors"), gates=self._gates)
        yield from collection.check_set(
            request.derived_attributes,
            lambda attribute, path: self._derived(attribute, path, request=name),
            at=at.child("derivedAttributes"),
            key=lambda attribute: attribute.name,
        )
        yield from _TYPES["AllocationMode"](request, at)
        yield from taints.check_tolerations(request.tolerations, at.child("tolerations"))

    def _derived(self, attribute: resourceclaim.DeviceDerivedAttribute, at: Path, *, request: str) -> Errors:
        if attribute.name and not self._constrained.has(attribute.name, request):
            detail = (
                "must be referenced by at least one matchAttribute or distinctAttribute constraint "
                "targeting this request"
            )
            yield fielderror.invalid(at.child("name"), rendering.named(attribute.name), detail)
        if attribute.expression:
            path = at.child("expression")
            errors, cost = expression.check_derived(attribute.expression, path, gates=self._gates)
            self.derived_cost += cost
            yield from errors


def check_selectors(
    selectors: tuple[devices.DeviceSelector, ...], at: Path, *, gates: feature.Gates, is_stored: bool = False
) -> Found:
    """Return the errors of selectors; stored ones compiled when they were new and are not compiled again."""

    def check_selector(selector: devices.DeviceSelector, path: Path) -> Errors:
        if selector.cel is None:
            yield fielderror.required(path.child("cel"))
        elif not is_stored:
            source = selector.cel.expression
            yield from expression.check_selector(source, path.child("cel", "expression"), gates=gates)

    return collection.check_list(selectors, check_selector, at=at, limit=limits.SELECTORS, size_covered=True)


class Facts(msgspec.Struct, frozen=True):
    """Facts about a claim that the rules for its constraints and configuration need."""

    requests: RequestNames
    context: Context


def _request_names(names: tuple[str, ...], at: Path, facts: Facts) -> Found:
    return facts.requests.check_all(names, at)


def _attribute_name(name: str, at: Path) -> Found:
    return fielderror.covered(formats.fully_qualified_name(name, at), origin="format=k8s-resource-fully-qualified-name")


def _allows_distinct(constraint: resourceclaim.DeviceConstraint, facts: Facts) -> bool:
    return facts.context.gates.on(feature.Gate.CONSUMABLE_CAPACITY)


def _check_opaque_config(config: resourceclaim.DeviceClaimConfiguration, at: Path, facts: Facts) -> Errors:
    return check_opaque(config.opaque, at, context=facts.context)


_TYPES: Final = rulenotation.load_structs("deviceclaim", globals())
