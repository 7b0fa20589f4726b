"""LimitRange: limits and defaults of resource requests in a namespace. A partial view."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Struct
from drachma.values import quantity


class LimitRangeItem(Struct, frozen=True, kw_only=True):
    """Limits and defaults for objects of one type."""

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
