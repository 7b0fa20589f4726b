"""Where pods of a set go, in the forms of the two versions: a list of domains, or slices of them in short.

A slice says what its domains have in common once: a value of a level that is the same for all, or how all of them begin
and end; and how many pods are in each.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_Form = Mapping[str, Any]


def as_slices(assignment: _Form) -> dict[str, Any]:
    """The form of v1beta2 of what v1beta1 says; Kueue too makes one slice of it."""
    levels, domains = assignment.get("levels") or [], assignment.get("domains") or []
    if not domains:
        return {"levels": levels, "slices": []}
    counts = [each["count"] for each in domains]
    pods = {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts}
    values = [_shortened([each["values"][level] for each in domains]) for level in range(len(levels))]
    return {
        "levels": levels,
        "slices": [{"domainCount": len(domains), "podCounts": pods, "valuesPerLevel": values}],
    }


def as_domains(assignment: _Form) -> dict[str, Any]:
    """The form of v1beta1 of what v1beta2 says."""
    domains = []
    for part in assignment.get("slices") or ():
        for position in range(part["domainCount"]):
            counts = part["podCounts"]
            count = counts["universal"] if "universal" in counts else counts["individual"][position]
            values = [_value(each, position) for each in part["valuesPerLevel"]]
            domains.append({"values": values, "count": count})
    return {"levels": assignment.get("levels") or [], "domains": domains}


def _value(values: _Form, position: int) -> str:
    if "universal" in values:
        return str(values["universal"])
    own = values["individual"]
    return f"{own.get('prefix', '')}{own['roots'][position]}{own.get('suffix', '')}"


def _shortened(values: Sequence[str]) -> dict[str, Any]:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    prefix = _beginning(values)
    suffix = _beginning([each[::-1] for each in values])[::-1]
    shortest = min(map(len, values))
    if len(prefix) + len(suffix) > shortest:
        # They may not overlap in the shortest value.
        prefix = prefix[: shortest - len(suffix)]
    roots = [each[len(prefix) : len(each) - len(suffix)] for each in values]
    return {
        "individual": {
            **({"prefix": prefix} if prefix else {}),
            **({"suffix": suffix} if suffix else {}),
            "roots": roots,
        }
    }


def _beginning(values: Sequence[str]) -> str:
    """What all values begin with."""
    first, last = min(values), max(values)
    for position, letter in enumerate(first):
        if position >= len(last) or last[position] != letter:
            return first[:position]
    return first
