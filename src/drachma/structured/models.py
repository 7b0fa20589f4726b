"""The structured models that are known, and what each knows of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from drachma.api.v1alpha2 import parameters
from drachma.structured import model, namedresources

_T = TypeVar("_T")

MODELS: Final[tuple[model.Model, ...]] = (namedresources.NamedResources(),)


def inventory(published: model.Slice) -> model.Inventory | None:
    """The devices of a slice; None where its model is not known."""
    found = _first(lambda each: each.inventory(published))
    return None if found is None else found[1]


def selectors(request: model.Request) -> tuple[model.Model, tuple[str, ...]] | None:
    """What a request asks for, one selector for each resource, and the model it asks by."""
    return _first(lambda each: each.selectors(request))


def filter_of(given: parameters.ResourceFilter) -> tuple[model.Model, str] | None:
    """What a filter asks for, and the model it asks by."""
    return _first(lambda each: each.filter(given))


def _first(ask: Callable[[model.Model], _T | None]) -> tuple[model.Model, _T] | None:
    for each in MODELS:
        answer = ask(each)
        if answer is not None:
            return each, answer
    return None
