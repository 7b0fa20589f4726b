"""Topology request of a pod set, from the annotations of its pod template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.values import quotation

REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
SLICE_CONSTRAINTS: Final = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
"""Annotation with a JSON array of slice layers, outermost first."""
GROUP_NAME: Final = "kueue.x-k8s.io/podset-group-name"

LAYER_COUNT: Final = "topology constraints must contain between 1 and 3 entries"
"""Message about an array of slice layers that is empty or too long."""
MAX_LAYERS: Final = 3

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""Spellings of the two booleans that Go's ParseBool reads."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+").fullmatch
_LONGEST_INTEGER: Final = 1000
_INT32: Final = range(-(2**31), 2**31)
_GO_TYPE: Final = "v1beta2.PodsetSliceRequiredTopologyConstraint"


class SliceLayer(NamedTuple):
    """Pods that belong into one domain of a topology level, ``size`` at a time."""

    topology: str = ""
    size: int = 0

    def document(self) -> dict[str, Any]:
        """Return the layer as a topology request has it, without zero values."""
        return {name: value for name, value in self._asdict().items() if value}


def build(
    annotations: Mapping[str, str],
    gates: Gates,
    *,
    index_label: str | None = None,
    sub_group_index_label: str | None = None,
    sub_group_count: int | None = None,
) -> dict[str, Any] | None:
    """Return the topology request of a pod set, or None if neither its annotations nor its job ask for one.

    The keyword arguments come from the kind of job: the label that numbers the pods, and the label and number of the
    groups that the pods form. Raises errors.InvalidValueError if an annotation cannot be read.
    """
    job_fields = {
        "podIndexLabel": index_label,
        "subGroupIndexLabel": sub_group_index_label,
        "subGroupCount": sub_group_count,
    }
    request: dict[str, Any] = {name: value for name, value in job_fields.items() if value is not None}
    has_slice_pair = SLICE_TOPOLOGY in annotations and SLICE_SIZE in annotations
    if REQUIRED in annotations:
        request["required"] = annotations[REQUIRED]
    elif PREFERRED in annotations:
        request["preferred"] = annotations[PREFERRED]
    elif UNCONSTRAINED in annotations:
        request["unconstrained"] = parse_bool(annotations[UNCONSTRAINED])
    elif not (request or has_slice_pair or SLICE_CONSTRAINTS in annotations):
        return None
    if SLICE_CONSTRAINTS in annotations and gates.on(Gate.TAS_MULTI_LAYER):
        layers = _read_layers(annotations[SLICE_CONSTRAINTS])
        request["podsetSliceRequiredTopologyConstraints"] = [each.document() for each in layers]
    elif has_slice_pair:
        request["podSetSliceRequiredTopology"] = annotations[SLICE_TOPOLOGY]
        request["podSetSliceSize"] = parse_int32(annotations[SLICE_SIZE])
    if GROUP_NAME in annotations and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = annotations[GROUP_NAME]
    return request


def parse_bool(text: str) -> bool:
    """Return the boolean that Go's ParseBool reads. Raises errors.InvalidValueError with Go's message."""
    if text not in TRUE | FALSE:
        raise errors.InvalidValueError(f"strconv.ParseBool: parsing {quotation.quote(text)}: invalid syntax")
    return text in TRUE


def parse_int32(text: str) -> int:
    """Return the integer that Go's ParseInt reads. Raises errors.InvalidValueError with Go's message."""
    problem = "invalid syntax"
    if _INTEGER(text):
        number = int(text) if len(text) <= _LONGEST_INTEGER else None
        if number is not None and number in _INT32:
            return number
        problem = "value out of range"
    raise errors.InvalidValueError(f"strconv.ParseInt: parsing {quotation.quote(text)}: {problem}")


def parse_layers(text: str) -> list[SliceLayer]:
    """Return the slice layers of a JSON array, read as Go's decoder does: by names of any case, null as the zero value.

    Raises errors.InvalidValueError if the text is not JSON or a value has another type. The message has Go's words if
    a type is wrong.
    """
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.InvalidValueError(str(error)) from None
    if document is None:
        return []
    if not isinstance(document, list):
        raise errors.InvalidValueError(_mismatch(document, "value", f"[]{_GO_TYPE}"))
    return [_layer(item) for item in document]


def _read_layers(text: str) -> list[SliceLayer]:
    try:
        layers = parse_layers(text)
    except errors.InvalidValueError as error:
        prefix = "failed to parse multi-layer topology constraints annotation"
        raise errors.InvalidValueError(f"{prefix}: {error}") from None
    if not 1 <= len(layers) <= MAX_LAYERS:
        raise errors.InvalidValueError(f"{LAYER_COUNT}: got {len(layers)}")
    return layers


def _layer(item: Any) -> SliceLayer:
    if item is None:
        return SliceLayer()
    if not isinstance(item, dict):
        raise errors.InvalidValueError(_mismatch(item, "value", _GO_TYPE))
    layer = SliceLayer()
    for key, value in item.items():
        name = key.casefold()
        if value is None or name not in SliceLayer._fields:
            continue
        place = f"struct field {_GO_TYPE.rpartition('.')[2]}.{name}"
        if name == "topology":
            if not isinstance(value, str):
                raise errors.InvalidValueError(_mismatch(value, place, "string"))
            layer = layer._replace(topology=value)
        else:
            if type(value) is not int or value not in _INT32:
                raise errors.InvalidValueError(_mismatch(value, place, "int32"))
            layer = layer._replace(size=value)
    return layer


def _mismatch(value: Any, place: str, go_type: str) -> str:
    names = {str: "string", bool: "bool", list: "array", dict: "object"}
    json_type = names.get(type(value)) or f"number {value}"
    return f"json: cannot unmarshal {json_type} into Go {place} of type {go_type}"
