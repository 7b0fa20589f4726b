"""LimitRange: what objects of a namespace may ask for, and get if they do not say. A partial view."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Struct
from drachma.values import quantity


class LimitRangeItem(Struct, frozen=True, kw_only=True):
    """What one object of a type may ask for, and what is set where it says nothing."""

    type: str = ABSENT_TEXT
    max: Mapping[str, quantity.Quantity] = ABSENT_MAP
    min: Mapping[str, quantity.Quantity] = ABSENT_MAP
    default: Mapping[str, quantity.Quantity] = ABSENT_MAP
    default_request: Mapping[str, quantity.Quantity] = ABSENT_MAP
    max_limit_request_ratio: Mapping[str, quantity.Quantity] = ABSENT_MAP


class LimitRangeSpec(Struct, frozen=True, kw_only=True):
    """The limits, at most one for each type."""

    limits: tuple[LimitRangeItem, ...] = ABSENT_TUPLE


class LimitRange(meta.Object, frozen=True, kw_only=True):
    """Core LimitRange, namespaced; a partial view."""

    spec: LimitRangeSpec = LimitRangeSpec()
