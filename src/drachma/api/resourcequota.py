"""ResourceQuota: limits and usage of a namespace."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Struct
from drachma.values import quantity


class ScopedResourceSelectorRequirement(Struct, frozen=True, kw_only=True):
    """One expression over a quota scope."""

    scope_name: str = ABSENT_TEXT
    operator: str = ABSENT_TEXT
    values: tuple[str, ...] = ABSENT_TUPLE


class ScopeSelector(Struct, frozen=True, kw_only=True):
    """Conjunction of expressions."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ABSENT_TUPLE


class ResourceQuotaSpec(Struct, frozen=True, kw_only=True):
    """The limits, and the objects they count."""

    hard: Mapping[str, quantity.Quantity] = ABSENT_MAP
    scopes: tuple[str, ...] = ABSENT_TUPLE
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, kw_only=True):
    """Limits in force, and usage."""

    hard: Mapping[str, quantity.Quantity] = ABSENT_MAP
    used: Mapping[str, quantity.Quantity] = ABSENT_MAP


class ResourceQuota(meta.Object, frozen=True, kw_only=True):
    """Core ResourceQuota, namespaced."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
