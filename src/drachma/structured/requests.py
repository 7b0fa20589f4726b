"""Requests in the parameters of a claim and of its class, in one form for both spellings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api.v1alpha2 import parameters
from drachma.structured import model, models

_UNKNOWN: Final = "the structured model is not known"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Request for one resource. ``name`` is its name as a request for a device.

    ``selector`` is from the parameters in the model ``asked_by``, ``filters`` are from the class for the driver, and
    ``vendor`` are the request's own parameters.
    """

    name: str
    driver: str
    asked_by: model.Model
    selector: str
    filters: tuple[tuple[model.Model, str], ...] = ()
    vendor: Any = None

    def expressions(self) -> tuple[str, ...]:
        """Return selectors of devices that must all match.

        Raises:
            cel.CompilationError: a selector is not valid in its model.
        """
        expression = self.asked_by.translate(self.selector, self.driver)
        return (expression, *(each.translate(text, self.driver) for each, text in self.filters))


def needs(
    of_claim: parameters.ResourceClaimParameters, of_class: parameters.ResourceClassParameters
) -> tuple[Need, ...]:
    """Return all requests in their order.

    Raises:
        errors.InvalidValueError: a request or filter is of an unknown model.
    """
    by_driver = filters(of_class)
    all_needs: list[Need] = []
    for driver, request, vendor in _requests(of_claim):
        selectors = models.selectors(request)
        if selectors is None:
            raise errors.InvalidValueError(f"request for resources of {driver}: {_UNKNOWN}")
        used, expressions = selectors
        for selector in expressions:
            need = Need(
                name=f"request-{len(all_needs)}",
                driver=driver,
                asked_by=used,
                selector=selector,
                filters=by_driver.get(driver, ()),
                vendor=vendor,
            )
            all_needs.append(need)
    return tuple(all_needs)


def drivers(of_claim: parameters.ResourceClaimParameters) -> list[str]:
    """Return the drivers of the requested resources."""
    return [driver for driver, _, _ in _requests(of_claim)]


def is_spelled_as_1_30(of_claim: parameters.ResourceClaimParameters) -> bool:
    """Return True if parameters are in the spelling of 1.30, so that results must be too."""
    return bool(of_claim.driver_requests)


def vendor_of_claim(of_claim: parameters.ResourceClaimParameters, driver: str) -> Any:
    """Return the vendor's parameters of a claim for a driver, or None."""
    for each in of_claim.driver_requests:
        if each.driver_name == driver:
            return each.vendor_parameters
    return of_claim.vendor_parameters


def vendor_of_class(of_class: parameters.ResourceClassParameters, driver: str) -> Any:
    """Return the vendor's parameters of a class for a driver, or None."""
    parameters_of_class = of_class.vendor_parameters
    if not isinstance(parameters_of_class, list):
        return parameters_of_class
    entries = (each for each in parameters_of_class if isinstance(each, dict) and each.get("driverName") == driver)
    return next((each.get("parameters") for each in entries), None)


def filters(of_class: parameters.ResourceClassParameters) -> dict[str, tuple[tuple[model.Model, str], ...]]:
    """Return the filters of a class by driver. Raises InvalidValueError like :func:`needs`."""
    by_driver: dict[str, tuple[tuple[model.Model, str], ...]] = {}
    for each in of_class.filters:
        selector = models.filter_of(each)
        if selector is None:
            raise errors.InvalidValueError(f"filter for resources of {each.driver_name}: {_UNKNOWN}")
        by_driver[each.driver_name] = (*by_driver.get(each.driver_name, ()), selector)
    return by_driver


def _requests(of_claim: parameters.ResourceClaimParameters) -> Iterator[tuple[str, model.Request, Any]]:
    for request in of_claim.requests:
        yield str(request.driver_name), request, None
    for of_driver in of_claim.driver_requests:
        for each in of_driver.requests:
            yield str(of_driver.driver_name), each, each.vendor_parameters
