"""What the parameters of a claim and of its class ask for, in one form for both spellings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api.v1alpha2 import parameters
from drachma.structured import model, models

_UNKNOWN: Final = "the structured model is not known"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one resource: ``name`` is how it is called as a request for a device.

    ``selector`` is that of the parameters in the model ``asked_by``, ``filters`` are those of the class for the driver,
    ``vendor`` are the request's own parameters.
    """

    name: str
    driver: str
    asked_by: model.Model
    selector: str
    filters: tuple[tuple[model.Model, str], ...] = ()
    vendor: Any = None

    def expressions(self) -> tuple[str, ...]:
        """Selectors of devices that must all hold.

        Raises:
            cel.CompilationError: one is no selector of its model.
        """
        asked = self.asked_by.translate(self.selector, self.driver)
        return (asked, *(each.translate(text, self.driver) for each, text in self.filters))


def needs(
    of_claim: parameters.ResourceClaimParameters, of_class: parameters.ResourceClassParameters
) -> tuple[Need, ...]:
    """All requests in their order.

    Raises:
        errors.InvalidValueError: a request or filter is of a model that is not known here.
    """
    by_driver = filters(of_class)
    found: list[Need] = []
    for driver, request, vendor in _requests(of_claim):
        asked = models.selectors(request)
        if asked is None:
            raise errors.InvalidValueError(f"request for resources of {driver}: {_UNKNOWN}")
        used, expressions = asked
        for selector in expressions:
            need = Need(
                name=f"request-{len(found)}",
                driver=driver,
                asked_by=used,
                selector=selector,
                filters=by_driver.get(driver, ()),
                vendor=vendor,
            )
            found.append(need)
    return tuple(found)


def drivers(of_claim: parameters.ResourceClaimParameters) -> list[str]:
    """The drivers whose resources are asked for."""
    return [driver for driver, _, _ in _requests(of_claim)]


def is_spelled_as_1_30(of_claim: parameters.ResourceClaimParameters) -> bool:
    """Whether parameters are in the spelling of 1.30, so that results have to be as well."""
    return bool(of_claim.driver_requests)


def vendor_of_claim(of_claim: parameters.ResourceClaimParameters, driver: str) -> Any:
    """The vendor's parameters of a claim for a driver, or None."""
    for each in of_claim.driver_requests:
        if each.driver_name == driver:
            return each.vendor_parameters
    return of_claim.vendor_parameters


def vendor_of_class(of_class: parameters.ResourceClassParameters, driver: str) -> Any:
    """The vendor's parameters of a class for a driver, or None."""
    given = of_class.vendor_parameters
    if not isinstance(given, list):
        return given
    entries = (each for each in given if isinstance(each, dict) and each.get("driverName") == driver)
    return next((each.get("parameters") for each in entries), None)


def filters(of_class: parameters.ResourceClassParameters) -> dict[str, tuple[tuple[model.Model, str], ...]]:
    """What a class asks of resources of each driver; InvalidValueError as :func:`needs`."""
    found: dict[str, tuple[tuple[model.Model, str], ...]] = {}
    for each in of_class.filters:
        asked = models.filter_of(each)
        if asked is None:
            raise errors.InvalidValueError(f"filter for resources of {each.driver_name}: {_UNKNOWN}")
        found[each.driver_name] = (*found.get(each.driver_name, ()), asked)
    return found


def _requests(of_claim: parameters.ResourceClaimParameters) -> Iterator[tuple[str, model.Request, Any]]:
    for request in of_claim.requests:
        yield str(request.driver_name), request, None
    for of_driver in of_claim.driver_requests:
        for each in of_driver.requests:
            yield str(of_driver.driver_name), each, each.vendor_parameters
