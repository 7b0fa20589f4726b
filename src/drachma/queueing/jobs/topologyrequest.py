"""What annotations of a pod template say of how close together its pods are to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.values import labels, quotation

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_PREFIX: Final = "kueue.x-k8s.io/podset-"


def of_annotations(annotations: Mapping[str, str], *, index_label: str) -> dict[str, Any]:
    """The topology request of pods that are numbered by a label; an InvalidValueError where a value is wrong."""
    said = {key.removeprefix(_PREFIX): value for key, value in annotations.items() if key.startswith(_PREFIX)}
    request: dict[str, Any] = {"podIndexLabel": index_label}
    if "required-topology" in said:
        request["required"] = said["required-topology"]
    elif "preferred-topology" in said:
        request["preferred"] = said["preferred-topology"]
    elif "unconstrained-topology" in said:
        request["unconstrained"] = _truth(said["unconstrained-topology"])
    if "slice-required-topology" in said and "slice-size" in said:
        request["podSetSliceRequiredTopology"] = said["slice-required-topology"]
        request["podSetSliceSize"] = _number(said["slice-size"])
    if "group-name" in said and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = said["group-name"]
    return request


def _truth(text: str) -> bool:
    if text not in TRUE | FALSE:
        raise errors.InvalidValueError(f"strconv.ParseBool: parsing {quotation.quote(text)}: invalid syntax")
    return text in TRUE


def _number(text: str) -> int:
    number = labels.parse_int64(text)
    if number is None:
        raise errors.InvalidValueError(f"strconv.ParseInt: parsing {quotation.quote(text)}: invalid syntax")
    return number
