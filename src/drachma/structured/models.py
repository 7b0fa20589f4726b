"""The known structured models, and their reading of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from drachma.api.v1alpha2 import parameters
from drachma.structured import model, namedresources

_T = TypeVar("_T")

MODELS: Final[tuple[model.Model, ...]] = (namedresources.NamedResources(),)


def inventory(published: model.Slice) -> model.Inventory | None:
    """Return the devices of a slice, or None if its model is unknown."""
    devices = _first(lambda each: each.inventory(published))
    return None if devices is None else devices[1]


def selectors(request: model.Request) -> tuple[model.Model, tuple[str, ...]] | None:
    """Return the model of a request and its selectors, one for each resource, or None."""
    return _first(lambda each: each.selectors(request))


def filter_of(resource_filter: parameters.ResourceFilter) -> tuple[model.Model, str] | None:
    """Return the model of a filter and its selector, or None."""
    return _first(lambda each: each.filter(resource_filter))


def _first(ask: Callable[[model.Model], _T | None]) -> tuple[model.Model, _T] | None:
    for each in MODELS:
        answer = ask(each)
        if answer is not None:
            return each, answer
    return None
