"""Rules for ResourceClaimParameters and ResourceClassParameters."""

from collections.abc import Iterable
from typing import Any, Final

from drachma.api.gates import Gates
from drachma.api.v1alpha2 import parameters
from drachma.validation import fielderror, formats
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.v1alpha2 import models, resourceclaim

_MODEL: Final = "namedResourcesWithAttributes"
_MODEL_OF_1_30: Final = "namedResources"


def check_claim(value: parameters.ResourceClaimParameters, *, gates: Gates) -> Errors:
    """New or changed parameters of claims."""
    if value.generated_from is not None:
        yield from resourceclaim.check_claim_reference(value.generated_from, Path("generatedFrom"))
    spellings = {"driverRequests": value.driver_requests, "requests": value.requests}
    yield from models.check_at_most_one([name for name, value in spellings.items() if value], Path("requests"))
    for position, request in enumerate(value.requests):
        yield from _request(request, Path("requests").item(position), gates=gates)
    yield from _driver_requests(value.driver_requests, Path("driverRequests"), gates=gates)


def check_class(value: parameters.ResourceClassParameters, *, gates: Gates) -> Errors:
    """New or changed parameters of classes."""
    if value.generated_from is not None:
        yield from resourceclaim.check_class_reference(value.generated_from, Path("generatedFrom"))
    filters = Path("filters")
    yield from _drivers((each.driver_name for each in value.filters), filters)
    for position, each in enumerate(value.filters):
        at = filters.item(position)
        spellings = {_MODEL: each.named_resources_with_attributes, _MODEL_OF_1_30: each.named_resources}
        yield from models.exactly_one(spellings, at)
        for name, model in spellings.items():
            if model is not None:
                place = at.child(name).child("selector")
                yield from models.check_selector(model.selector, place, driver=each.driver_name, gates=gates)
    yield from _vendor_parameters(value.vendor_parameters, Path("vendorParameters"))


def _request(request: parameters.ResourceRequest, at: Path, *, gates: Gates) -> Errors:
    yield from formats.driver_name(request.driver_name, at.child("driverName"))
    model = request.named_resources_with_attributes
    yield from models.exactly_one({_MODEL: model}, at)
    if model is None:
        return
    below = at.child(_MODEL)
    if model.required and model.selector:
        yield from models.check_at_most_one(["required", "selector"], below)
    if not model.required:
        place = below.child("selector")
        yield from models.check_selector(model.selector, place, driver=request.driver_name, gates=gates)
    for position, each in enumerate(model.required):
        place = below.child("required").item(position).child("selector")
        yield from models.check_selector(each.selector, place, driver=request.driver_name, gates=gates)


def _driver_requests(value: tuple[parameters.DriverRequests, ...], at: Path, *, gates: Gates) -> Errors:
    yield from _drivers((each.driver_name for each in value), at)
    for position, of_driver in enumerate(value):
        below = at.item(position).child("requests")
        if not of_driver.requests:
            yield fielderror.required(below, "empty entries with no requests are not allowed")
        for index, request in enumerate(of_driver.requests):
            place = below.item(index)
            yield from models.exactly_one({_MODEL_OF_1_30: request.named_resources}, place)
            if request.named_resources is not None:
                yield from models.check_selector(
                    request.named_resources.selector,
                    place.child(_MODEL_OF_1_30).child("selector"),
                    driver=of_driver.driver_name,
                    gates=gates,
                )


def _drivers(value: Iterable[str], at: Path) -> Errors:
    """Every driver is named rightly, and once."""
    previous: set[str] = set()
    for position, driver in enumerate(value):
        place = at.item(position).child("driverName")
        yield from formats.driver_name(driver, place)
        if driver in previous:
            yield fielderror.duplicate(place, driver)
        previous.add(driver)


def _vendor_parameters(value: Any, at: Path) -> Errors:
    """In the KEP any object; in 1.30 a list with at most one entry for a driver."""
    if isinstance(value, list):
        yield from _drivers((str(each.get("driverName", "")) if isinstance(each, dict) else "" for each in value), at)
