"""ClusterRole: rules about what may be done. A partial view, for who puts roles together."""

import msgspec

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE, ZERO_TUPLE, Struct


class PolicyRule(Struct, frozen=True, kw_only=True):
    """What may be done to what."""

    verbs: tuple[str, ...] = ZERO_TUPLE
    api_groups: tuple[str, ...] = ABSENT_TUPLE
    resources: tuple[str, ...] = ABSENT_TUPLE
    resource_names: tuple[str, ...] = ABSENT_TUPLE
    non_resource_urls: tuple[str, ...] = msgspec.field(default=ABSENT_TUPLE, name="nonResourceURLs")


class AggregationRule(Struct, frozen=True, kw_only=True):
    """Labels of the roles that one is put together from."""

    cluster_role_selectors: tuple[meta.LabelSelector, ...] = ABSENT_TUPLE


class ClusterRole(meta.Object, frozen=True, kw_only=True):
    """``rbac.authorization.k8s.io`` ClusterRole, of the whole cluster; a partial view."""

    rules: tuple[PolicyRule, ...] = ZERO_TUPLE
    aggregation_rule: AggregationRule | None = None
