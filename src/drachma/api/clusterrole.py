"""ClusterRole: rules of access. A partial view, for role aggregation."""

import msgspec

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE, ZERO_TUPLE, Struct


class PolicyRule(Struct, frozen=True, kw_only=True):
    """Verbs that a role allows on resources."""

    verbs: tuple[str, ...] = ZERO_TUPLE
    api_groups: tuple[str, ...] = ABSENT_TUPLE
    resources: tuple[str, ...] = ABSENT_TUPLE
    resource_names: tuple[str, ...] = ABSENT_TUPLE
    non_resource_urls: tuple[str, ...] = msgspec.field(default=ABSENT_TUPLE, name="nonResourceURLs")


class AggregationRule(Struct, frozen=True, kw_only=True):
    """Label selectors of the roles to aggregate."""

    cluster_role_selectors: tuple[meta.LabelSelector, ...] = ABSENT_TUPLE


class ClusterRole(meta.Object, frozen=True, kw_only=True):
    """``rbac.authorization.k8s.io`` ClusterRole, cluster-scoped; a partial view."""

    rules: tuple[PolicyRule, ...] = ZERO_TUPLE
    aggregation_rule: AggregationRule | None = None
