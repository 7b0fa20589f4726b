"""Required node affinity: the nodes that a pod requires by labels, by names or by ``nodeSelector``."""

from __future__ import annotations

import functools
from typing import Final

from drachma import errors
from drachma.api import node as nodes
from drachma.api import nodeselector, pod
from drachma.bounds import memory
from drachma.claims import nodeaffinity
from drachma.scheduler.framework import nodeselectors
from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import nodes as matching

_Labels = tuple[tuple[str, str], ...]
Required = tuple[_Labels, nodeselector.NodeSelector | None]
"""Labels and terms that a pod requires of nodes."""


def of(waiting_pod: pod.Pod) -> Required:
    """Return the required node affinity of a pod."""
    return tuple(sorted(waiting_pod.spec.node_selector.items())), nodeaffinity.required(waiting_pod.spec)


def matches(required: Required, node: nodes.Node) -> bool:
    """Return True if a node matches."""
    try:
        return _matcher(required).matches(node.metadata.labels, node.metadata.name)
    except errors.InvalidValueError:
        # The API server does not validate these terms, and upstream treats malformed terms as matching nothing.
        return False


def matching_nodes(required: Required, of_all: snapshotnodes.Nodes, *, among: int) -> int:
    """Return the nodes of a set that match."""
    ask = functools.partial(_matches_info, required)
    return among & of_all.properties.classes(("required", required), ask, among=among).get(True, 0)


def _matches_info(required: Required, info: nodeinfo.NodeInfo) -> bool:
    return matches(required, info.node)


def _matcher(required: Required) -> matching.RequiredAffinity:
    matcher = _matchers.get(required)
    if matcher is None:
        labels, selector = required
        stated = None if selector is None else nodeaffinity.terms(selector.node_selector_terms)
        matcher = matching.RequiredAffinity(dict(labels), stated)
        _matchers.put(required, matcher, size=nodeselectors.size(required))
    return matcher


_matchers: Final = memory.Cache[Required, matching.RequiredAffinity]("node selectors")
