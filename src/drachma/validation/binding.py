"""Rules for binding conditions of devices and allocation results: both lists or neither, no name twice."""

from drachma.api import struct
from drachma.validation import collection, fielderror, formats, limits, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path


def check(conditions: tuple[str, ...], failures: tuple[str, ...], at: Path) -> Found:
    """``bindingConditions`` and ``bindingFailureConditions`` below ``at``."""
    return list(_check(conditions, failures, at)) if conditions or failures else ()


def _check(conditions: tuple[str, ...], failures: tuple[str, ...], at: Path) -> Errors:
    conditions_at, failures_at = at.child("bindingConditions"), at.child("bindingFailureConditions")
    for names, path in ((conditions, conditions_at), (failures, failures_at)):
        limit = limits.BINDING_CONDITIONS
        yield from collection.check_list(names, formats.label_key, at=path, limit=limit, size_covered=True)
    yield from _duplicates(conditions, conditions_at)
    for position, failure in enumerate(failures):
        if failure in failures[:position]:
            yield fielderror.duplicate(failures_at.item(position), failure)
        if failure in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield fielderror.invalid(failures_at.item(position), failure, detail)
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield fielderror.invalid(conditions_at, _shown(conditions), detail)
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield fielderror.invalid(failures_at, _shown(failures), detail)


def _duplicates(names: tuple[str, ...], at: Path) -> Errors:
    for position, name in enumerate(names):
        if name in names[:position]:
            yield fielderror.duplicate(at.item(position), name)


def _shown(names: tuple[str, ...]) -> rendering.Rendered:
    return rendering.NULL if struct.is_absent(names) else rendering.wire(names)
