"""Rules for the topology annotations of pod templates, in Kueue's order and words."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma import errors
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.topologyrequest import (
    GROUP_NAME,
    PREFERRED,
    REQUIRED,
    SLICE_CONSTRAINTS,
    SLICE_SIZE,
    SLICE_TOPOLOGY,
    UNCONSTRAINED,
    SliceLayer,
)
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names, quotation

Annotations: TypeAlias = Mapping[str, str]
PodSet: TypeAlias = Mapping[str, Any]

_GROUP_SIZE: Final = 2
_UINT64: Final = 2**64
_LONGEST_NUMBER: Final = 1000
_AT_LEAST_ONE: Final = "must be greater than or equal to 1"


def check_annotations(annotations: Annotations, at: Path, gates: Gates) -> Errors:
    """Check the topology annotations of a pod template; ``at`` is the path of the annotations."""
    if sum(name in annotations for name in (REQUIRED, PREFERRED, UNCONSTRAINED)) > 1:
        listed = ", ".join(map(quotation.quote, (REQUIRED, PREFERRED, UNCONSTRAINED)))
        detail = f"must not contain more than one topology annotation: [{listed}]"
        yield fielderror.invalid(at, fielderror.OMITTED, detail)
    for name in (REQUIRED, PREFERRED, SLICE_TOPOLOGY):
        if name in annotations:
            yield from _label_key(annotations[name], at.key(name))
    yield from _group_name(annotations, at)
    unconstrained = annotations.get(UNCONSTRAINED)
    if unconstrained is not None and unconstrained not in topologyrequest.TRUE | topologyrequest.FALSE:
        yield fielderror.invalid(at.key(UNCONSTRAINED), unconstrained, "must be a boolean value")
    yield from _slice_size(annotations, at)
    if SLICE_CONSTRAINTS in annotations:
        yield from _constraints(annotations, at, gates)


def check_upper_bound(annotations: Annotations, at: Path, pod_count: int) -> Errors:
    """Check that a slice is not larger than its pod set; ``at`` is the path of the annotations."""
    detail = f"must not be greater than pod set count {pod_count}"
    text = annotations.get(SLICE_SIZE)
    if text is not None:
        size = _parse_size(text)
        if size is None:
            yield fielderror.invalid(at.key(SLICE_SIZE), text, "must be a numeric value")
            return
        if size > pod_count:
            yield fielderror.invalid(at.key(SLICE_SIZE), text, detail)
    if SLICE_CONSTRAINTS in annotations:
        try:
            layers = topologyrequest.parse_layers(annotations[SLICE_CONSTRAINTS])
        except errors.InvalidValueError:
            return
        if layers and layers[0].size > pod_count:
            yield fielderror.invalid(at.key(SLICE_CONSTRAINTS), layers[0].size, detail)


def check_groups(pod_sets: Sequence[PodSet], paths: Mapping[str, Path]) -> Errors:
    """Check the groups of a leader and its workers; ``paths`` are those of the annotations, by name of the pod set."""
    groups: dict[str, list[PodSet]] = {}
    for pod_set in pod_sets:
        group = (pod_set.get("topologyRequest") or {}).get("podSetGroupName")
        if group is not None:
            groups.setdefault(group, []).append(pod_set)
    for group, members in groups.items():
        at = [paths[each["name"]] for each in members]
        if len(members) != _GROUP_SIZE:
            detail = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
            yield from (fielderror.invalid(each.key(GROUP_NAME), group, detail) for each in at)
            continue
        first, second = (each.get("count", 0) for each in members)
        if first != 1 and second != 1:
            detail = (
                "can only define groups where at least one pod set has only 1 replica, "
                f"got: {first} replica(s) and {second} replica(s) in the group"
            )
            yield from (fielderror.invalid(each.key(GROUP_NAME), group, detail) for each in at)
        if not _is_same_level(*(each["topologyRequest"] for each in members)):
            for here, other in (at, at[::-1]):
                detail = f"must specify '{REQUIRED}' or '{PREFERRED}' topology consistent with '{other}'"
                yield fielderror.invalid(here, fielderror.OMITTED, f"{detail} in group '{group}'")


def _is_same_level(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    levels = [(each.get("required"), each.get("preferred")) for each in (one, other)]
    return (None, None) not in levels and levels[0] == levels[1]


def _label_key(text: str, at: Path) -> Errors:
    yield from fielderror.problems(at, text, names.label_key(text))


def _group_name(annotations: Annotations, at: Path) -> Errors:
    name = annotations.get(GROUP_NAME)
    if name is None:
        return
    here = at.key(GROUP_NAME)
    is_short_number = len(name) <= _LONGEST_NUMBER and name.isascii() and name.isdigit()
    if is_short_number and int(name) < _UINT64:
        yield fielderror.invalid(here, name, "must not be a number")
    for other in (SLICE_SIZE, SLICE_TOPOLOGY):
        if other in annotations:
            yield fielderror.forbidden(here, f"may not be set when '{other}' is specified")
    if PREFERRED not in annotations and REQUIRED not in annotations:
        detail = f"may not be set when neither '{PREFERRED}' nor '{REQUIRED}' is specified"
        yield fielderror.forbidden(here, detail)


def _parse_size(text: str) -> int | None:
    try:
        return topologyrequest.parse_int32(text)
    except errors.InvalidValueError:
        return None


def _slice_size(annotations: Annotations, at: Path) -> Errors:
    here = at.key(SLICE_SIZE)
    text = annotations.get(SLICE_SIZE)
    if text is not None:
        size = _parse_size(text)
        if size is None:
            yield fielderror.invalid(here, text, "must be a numeric value")
        elif size < 1:
            yield fielderror.invalid(here, text, _AT_LEAST_ONE)
    if SLICE_TOPOLOGY in annotations and text is None:
        yield fielderror.required(here, f"must be set when '{SLICE_TOPOLOGY}' is specified")
    if SLICE_TOPOLOGY not in annotations and text is not None:
        yield fielderror.forbidden(here, f"may not be set when '{SLICE_TOPOLOGY}' is not specified")


def _constraints(annotations: Annotations, at: Path, gates: Gates) -> Errors:
    here = at.key(SLICE_CONSTRAINTS)
    if not gates.on(Gate.TAS_MULTI_LAYER):
        detail = f"the {Gate.TAS_MULTI_LAYER} feature gate must be enabled to use this annotation"
        yield fielderror.forbidden(here, detail)
        return
    for other in (SLICE_TOPOLOGY, SLICE_SIZE):
        if other in annotations:
            yield fielderror.forbidden(here, f"may not be set when '{other}' is specified")
    if GROUP_NAME in annotations:
        yield fielderror.forbidden(at.key(GROUP_NAME), f"may not be set when '{SLICE_CONSTRAINTS}' is specified")
    text = annotations[SLICE_CONSTRAINTS]
    try:
        layers = topologyrequest.parse_layers(text)
    except errors.InvalidValueError as error:
        yield fielderror.invalid(here, text, f"must be a valid JSON array: {error}")
        return
    if not 1 <= len(layers) <= topologyrequest.MAX_LAYERS:
        yield fielderror.invalid(here, text, topologyrequest.LAYER_COUNT)
        return
    yield from _layers(layers, here)


def _layers(layers: Sequence[SliceLayer], at: Path) -> Errors:
    for position, layer in enumerate(layers):
        here = at.item(position)
        yield from _label_key(layer.topology, here.child("topology"))
        if layer.size < 1:
            yield fielderror.invalid(here.child("size"), layer.size, _AT_LEAST_ONE)
    first_positions: dict[str, int] = {}
    for position, layer in enumerate(layers):
        first = first_positions.setdefault(layer.topology, position)
        if first != position:
            value = f"{layer.topology} (also at index {first})"
            yield fielderror.duplicate(at.item(position).child("topology"), value)
    for position, (parent, layer) in enumerate(itertools.pairwise(layers), start=1):
        if layer.size > 0 and parent.size % layer.size:
            detail = f"must evenly divide the parent layer size {parent.size}"
            yield fielderror.invalid(at.item(position).child("size"), layer.size, detail)
