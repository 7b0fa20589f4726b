"""Topology: the levels of a data center, by the labels that nodes have for them."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct


class TopologyLevel(Struct, frozen=True, kw_only=True):
    """Label of the nodes whose value names a domain of the level."""

    node_label: str = ABSENT_TEXT


class TopologySpec(Struct, frozen=True, kw_only=True):
    """Levels, the highest first."""

    levels: tuple[TopologyLevel, ...] = ABSENT_TUPLE


class Topology(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` Topology; a partial view."""

    spec: TopologySpec = TopologySpec()
