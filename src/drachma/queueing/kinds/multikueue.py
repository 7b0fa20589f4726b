"""MultiKueueCluster and MultiKueueConfig: other clusters, and those to which an admission check dispatches."""

from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct

ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""Label of objects in other clusters with the cluster that dispatched them."""
ORIGIN_UID: Final = "kueue.x-k8s.io/multikueue-origin-uid"
"""Annotation of dispatched objects with the uid of the original."""


class KubeConfig(Struct, frozen=True, kw_only=True):
    """Place of a kubeconfig: the name of a Secret, or the path of a file."""

    location: str = ABSENT_TEXT
    location_type: str = ABSENT_TEXT


class ClusterProfileReference(Struct, frozen=True, kw_only=True):
    """ClusterProfile of a cluster."""

    name: str = ABSENT_TEXT


class ClusterSource(Struct, frozen=True, kw_only=True):
    """Connection to a cluster; one of the fields."""

    kube_config: KubeConfig | None = None
    cluster_profile_ref: ClusterProfileReference | None = None


class MultiKueueClusterSpec(Struct, frozen=True, kw_only=True):
    """Connection to a cluster."""

    cluster_source: ClusterSource = ClusterSource()


class MultiKueueClusterStatus(Struct, frozen=True, kw_only=True):
    """Conditions of the connection."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class MultiKueueCluster(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` MultiKueueCluster."""

    spec: MultiKueueClusterSpec = MultiKueueClusterSpec()
    status: MultiKueueClusterStatus = MultiKueueClusterStatus()


class MultiKueueConfigSpec(Struct, frozen=True, kw_only=True):
    """Names of clusters, the most preferred first."""

    clusters: tuple[str, ...] = ABSENT_TUPLE


class MultiKueueConfig(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` MultiKueueConfig; a partial view."""

    spec: MultiKueueConfigSpec = MultiKueueConfigSpec()
