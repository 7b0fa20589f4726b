"""Shape of a topology request: its levels and slices, resolved on one tree, with Kueue's messages for wrong ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from drachma.queueing.amounts import Requests
from drachma.queueing.kinds import workload
from drachma.queueing.topology.assignment import Assignment
from drachma.queueing.topology.devicerooms import Claims
from drachma.queueing.topology.tree import Tree


class PodSetRequest(NamedTuple):
    """Pods of one set that are to be placed."""

    pod_set: workload.PodSet
    pods: int
    per_pod: Requests
    """Requests of one pod."""
    group: str | None = None
    """Name of the group whose pod sets are placed together: a leader and its workers."""
    is_implied: bool = False
    """True if the pod set asks for no topology, and all flavors of its queue have one."""
    previous: Assignment | None = None
    """Assignment of the workload that this one replaces, for elastic jobs."""
    claims: Claims = ()
    """Claims of one pod, if a place must have devices for them."""
    problem: str = ""
    """Contradiction in the pod set's updates by admission checks, with which no place is searched."""

    @property
    def name(self) -> str:
        return self.pod_set.name


class Layer(NamedTuple):
    """Level that slices of a number of pods stay within."""

    label: str
    size: int


class Shape(NamedTuple):
    """Request with levels as numbers, 0 for the highest."""

    level: int
    slice_level: int
    slice_size: int
    inner_sizes: Mapping[int, int]
    """Size of inner slices by level; a layer counts from below the previous layer down to its own level."""
    layers: tuple[Layer, ...]
    is_required: bool
    is_unconstrained: bool


class ShapeError(Exception):
    """Request that the tree cannot serve; the text is Kueue's message."""


def layers(request: workload.PodSetTopologyRequest | None) -> tuple[Layer, ...]:
    """Return the slice layers of a request, the outermost first."""
    if request is None:
        return ()
    if request.podset_slice_required_topology_constraints:
        return tuple(Layer(each.topology, each.size) for each in request.podset_slice_required_topology_constraints)
    if request.pod_set_slice_required_topology is None:
        return ()
    return (Layer(request.pod_set_slice_required_topology, request.pod_set_slice_size or 0),)


def requested_level(tree: Tree, request: workload.PodSetTopologyRequest | None, *, is_implied: bool) -> str | None:
    """Return the label of the requested level, or None if the request names none."""
    if request is not None:
        if request.required is not None:
            return request.required
        if request.preferred is not None:
            return request.preferred
        if layers(request):
            return tree.levels[0]
        if request.unconstrained:
            return tree.levels[-1]
    return tree.levels[-1] if is_implied else None


def has_levels(tree: Tree, request: workload.PodSetTopologyRequest | None) -> bool:
    """Return True if a tree has all levels that an explicit request names."""
    label = requested_level(tree, request, is_implied=False)
    return label in tree.levels and all(layer.label in tree.levels for layer in layers(request))


def resolve(tree: Tree, request: workload.PodSetTopologyRequest | None, *, is_implied: bool) -> Shape:
    """Resolve a request on a tree. Raises ShapeError."""
    slice_layers = layers(request)
    slice_size = slice_layers[0].size if slice_layers else 1
    if slice_size <= 0:
        raise ShapeError("slice topology requested, but slice size not provided")
    label = requested_level(tree, request, is_implied=is_implied)
    if label is None:
        raise ShapeError("topology level not specified")
    level = tree.level_index(label)
    if level is None:
        raise ShapeError(f"no requested topology level: {label}")
    slice_label = slice_layers[0].label if slice_layers else tree.levels[-1]
    slice_level = tree.level_index(slice_label)
    if slice_level is None:
        raise ShapeError(f"no requested topology level for slices: {slice_label}")
    if level > slice_level:
        raise ShapeError(f"podset slice topology {slice_label} is above the podset topology {label}")
    is_required = request is not None and request.required is not None
    is_preferred = request is not None and request.preferred is not None
    is_unconstrained = (
        is_implied
        or (request is not None and bool(request.unconstrained))
        or (bool(slice_layers) and not is_required and not is_preferred)
    )
    return Shape(
        level=level,
        slice_level=slice_level,
        slice_size=slice_size,
        inner_sizes=_inner_sizes(tree, slice_layers, slice_level),
        layers=slice_layers,
        is_required=is_required,
        is_unconstrained=is_unconstrained,
    )


def _inner_sizes(tree: Tree, slice_layers: tuple[Layer, ...], slice_level: int) -> dict[int, int]:
    sizes: dict[int, int] = {}
    outer_level = slice_level
    for outer, inner in itertools.pairwise(slice_layers):
        level = tree.level_index(inner.label)
        if level is None:
            raise ShapeError(f"no requested topology level for additional slice layer: {inner.label}")
        if level <= outer_level:
            above = tree.levels[outer_level]
            raise ShapeError(f"additional slice layer topology {inner.label} must be at a lower level than {above}")
        if not inner.size or outer.size % inner.size:
            raise ShapeError(
                f"additional slice layer size {inner.size} must evenly divide parent layer size {outer.size}"
            )
        sizes.update(dict.fromkeys(range(outer_level + 1, level + 1), inner.size))
        outer_level = level
    return sizes
