"""Rules for ResourceClaimParameters and ResourceClassParameters."""

from typing import Any, Final

import msgspec

from drachma.api.gates import Gates
from drachma.api.v1alpha2 import parameters
from drachma.validation import collection, fielderror, formats, rulenotation
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import ROOT, Path
from drachma.validation.v1alpha2 import models

_Owner = parameters.ResourceRequest | parameters.DriverRequests | parameters.ResourceFilter


class Facts(msgspec.Struct, frozen=True):
    """Facts about a write, and the driver that selectors are for."""

    gates: Gates
    driver: str = ""


def check_claim(value: parameters.ResourceClaimParameters, context: Context) -> Found:
    """Return the errors of new or changed parameters of claims."""
    return _TYPES["ResourceClaimParameters"](value, ROOT, Facts(context.gates))


def check_class(value: parameters.ResourceClassParameters, context: Context) -> Found:
    """Return the errors of new or changed parameters of classes."""
    return _TYPES["ResourceClassParameters"](value, ROOT, Facts(context.gates))


def _check_parts(owner: _Owner, at: Path, facts: Facts) -> Found:
    """Check the parts of a request or filter, whose selectors are for its driver."""
    return _TYPES[f"{type(owner).__name__}Parts"](owner, at, Facts(facts.gates, owner.driver_name))


def _selector(text: str, at: Path, facts: Facts) -> Errors:
    return models.check_selector(text, at, driver=facts.driver, gates=facts.gates)


def _check_requests_spelling(value: parameters.ResourceClaimParameters, at: Path) -> Errors:
    spellings = {"driverRequests": value.driver_requests, "requests": value.requests}
    yield from models.check_at_most_one([name for name, value in spellings.items() if value], at.child("requests"))


def _check_selection(model: parameters.NamedResourcesWithAttributesRequest, at: Path) -> Errors:
    if model.required and model.selector:
        yield from models.check_at_most_one(["required", "selector"], at)


def _check_filter_model(value: parameters.ResourceFilter, at: Path) -> Errors:
    spellings = {
        "namedResourcesWithAttributes": value.named_resources_with_attributes,
        "namedResources": value.named_resources,
    }
    yield from models.exactly_one(spellings, at)


def _vendor_parameters(value: Any, at: Path) -> Errors:
    """Check parameters that are any object in the KEP; in 1.30 a list with at most one entry for a driver."""
    entries = value if isinstance(value, list) else ()
    drivers = [{"driverName": str(each.get("driverName", "")) if isinstance(each, dict) else ""} for each in entries]
    for place, _, driver, is_repeated in collection.walk_items(drivers, at, field="driverName"):
        yield from formats.driver_name(driver, place.child("driverName"))
        if is_repeated:
            yield fielderror.duplicate(place.child("driverName"), driver)


_TYPES: Final = rulenotation.load_structs("v1alpha2/parameters", globals())
