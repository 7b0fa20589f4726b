"""Rules for limit ranges: bounds, defaults and ratios that fit together.

Upstream goes through resources in no particular order; here they are in that of their names.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import resources
from drachma.values import names, quantity

_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_NOT_FOR_PODS: Final = "may not be specified when `type` is 'Pod'"
_NO_STORAGE: Final = "either minimum or maximum storage value is required, but neither was provided"
_MOST_MILLI: Final = (2**63 - 1) // 1000
_ONE: Final = quantity.Quantity.from_int(1)

Amounts = Mapping[str, quantity.Quantity]


class _Bounds(NamedTuple):
    """What is said about one resource; None where nothing is."""

    least: quantity.Quantity | None
    most: quantity.Quantity | None
    default: quantity.Quantity | None
    default_request: quantity.Quantity | None
    ratio: quantity.Quantity | None


def check(spec: Mapping[str, Any]) -> Errors:
    """The limits of a namespace."""
    types = set()
    for position, item in enumerate(spec.get("limits") or ()):
        at = SPEC.child("limits").item(position)
        kind = item.get("type", "")
        yield from _type(kind, at.child("type"))
        if kind in types:
            yield fielderror.duplicate(at.child("type"), rendering.named(kind))
        types.add(kind)
        yield from _item(item, kind, at)


def _type(kind: str, at: Path) -> Found:
    found = fielderror.problems(at, rendering.named(kind), names.qualified_name(kind))
    if found or "/" in kind or kind in _TYPES:
        return found
    return [fielderror.invalid(at, rendering.named(kind), "must be a standard limit type or fully qualified")]


def _item(item: Mapping[str, Any], kind: str, at: Path) -> Errors:
    fields = {field: item.get(field) or {} for field in ("max", "min", "default", "defaultRequest")}
    for field in ("max", "min"):
        yield from _names(fields[field], kind, at.child(field))
    for field in ("default", "defaultRequest"):
        if kind != "Pod":
            yield from _names(fields[field], kind, at.child(field))
        elif fields[field]:
            yield fielderror.forbidden(at.child(field), _NOT_FOR_PODS)
            fields[field] = {}
    if kind == "PersistentVolumeClaim" and "storage" not in fields["min"] and "storage" not in fields["max"]:
        yield fielderror.required(at.child("limits"), _NO_STORAGE)
    fields["maxLimitRequestRatio"] = item.get("maxLimitRequestRatio") or {}
    yield from _names(fields["maxLimitRequestRatio"], kind, at.child("maxLimitRequestRatio"))
    amounts = {
        field: {name: quantity.Quantity.parse(text) for name, text in each.items()} for field, each in fields.items()
    }
    for name in sorted({name for each in amounts.values() for name in each}):
        bounds = _Bounds(
            *(amounts[field].get(name) for field in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"))
        )
        yield from _order(name, bounds, at)
        yield from _ratio(name, bounds, at)
        yield from _overcommit(name, bounds, at)


def _names(amounts: Mapping[str, str], kind: str, at: Path) -> Errors:
    rule = resources.container_resource if kind in ("Pod", "Container") else resources.any_resource
    for name in sorted(amounts):
        yield from rule(name, at.key(name))


def _order(name: str, bounds: _Bounds, at: Path) -> Errors:
    least, most, default, request, _ = bounds
    if least is not None and most is not None and least > most:
        detail = f"min value {least} is greater than max value {most}"
        yield fielderror.invalid(at.child("min").key(name), str(least), detail)
    requests, defaults = at.child("defaultRequest").key(name), at.child("default").key(name)
    if request is not None and least is not None and least > request:
        detail = f"min value {least} is greater than default request value {request}"
        yield fielderror.invalid(requests, str(request), detail)
    if request is not None and most is not None and request > most:
        detail = f"default request value {request} is greater than max value {most}"
        yield fielderror.invalid(requests, str(request), detail)
    if request is not None and default is not None and request > default:
        detail = f"default request value {request} is greater than default limit value {default}"
        yield fielderror.invalid(requests, str(request), detail)
    # Upstream shows the bound here and not the default.
    if default is not None and least is not None and least > default:
        yield fielderror.invalid(defaults, str(least), f"min value {least} is greater than default value {default}")
    if default is not None and most is not None and default > most:
        yield fielderror.invalid(defaults, str(most), f"default value {default} is greater than max value {most}")


def _ratio(name: str, bounds: _Bounds, at: Path) -> Errors:
    ratio, least, most = bounds.ratio, bounds.least, bounds.most
    if ratio is None:
        return
    path = at.child("maxLimitRequestRatio").key(name)
    if ratio < _ONE:
        yield fielderror.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least is None or most is None:
        return
    if all(each.as_int64() < _MOST_MILLI for each in (ratio, least, most)):
        wanted, low, high = ratio.milli_value() / 1000, least.milli_value(), most.milli_value()
    else:
        wanted, low, high = float(ratio.as_int64()), least.as_int64(), most.as_int64()
    # Without a least amount there is no bound for it; Go divides by zero and gets infinity.
    if low and wanted > high / low:
        yield fielderror.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {high / low:f}")


def _overcommit(name: str, bounds: _Bounds, at: Path) -> Errors:
    if names.is_native_resource(name) and not names.is_huge_page_resource(name):
        return
    default, request = bounds.default, bounds.default_request
    if default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield fielderror.invalid(at.child("defaultRequest").key(name), str(request), detail)
