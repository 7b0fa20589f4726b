"""Conversion of topology assignments between v1beta1 (a list of domains) and v1beta2 (compressed slices).

A slice states once what its domains share: the value of a level if it is the same for all, otherwise a common prefix
and suffix, and the number of pods in each domain.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.server import status

_Form = Mapping[str, Any]

EXPANSION_BYTES: Final = 6 << 20
"""Bytes that all topology assignments of an object may take in v1beta1: a slice of v1beta2 can describe very many
domains in a few bytes, and an object of v1beta1 has at most 6 MiB."""

_DOMAIN_BYTES: Final = 24
_VALUE_BYTES: Final = 3
"""JSON of a domain and of a value in addition to the texts of the values."""

_MOST_LEVELS: Final = 16
_LONGEST_TEXT: Final = 253
"""Limits on the levels of an assignment and on the length of a shared text; the schemas allow no more."""


class Expansion:
    """Bytes that are left for assignments in v1beta1."""

    def __init__(self, limit: int = EXPANSION_BYTES) -> None:
        self._limit: Final = limit
        self._used = 0

    def take(self, size: int) -> None:
        """Take bytes. Raises a StatusError if there are not as many left."""
        self._used += size
        if self._used > self._limit:
            problem = f"topology assignments of {self._used} bytes, and v1beta1 holds at most {self._limit}"
            raise status.too_large(problem)


def to_slices(assignment: _Form) -> _Form:
    """Return an assignment of v1beta1 as v1beta2, with one slice, as Kueue does.

    A malformed assignment is returned unchanged.
    """
    levels, domains = assignment.get("levels") or [], assignment.get("domains") or []
    if not _has_form(levels, domains):
        return assignment
    if not domains:
        return {"levels": levels, "slices": []}
    counts = [each["count"] for each in domains]
    pods: _Form = {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts}
    values = [_compress([each["values"][level] for each in domains]) for level in range(len(levels))]
    return {
        "levels": levels,
        "slices": [{"domainCount": len(domains), "podCounts": pods, "valuesPerLevel": values}],
    }


def to_domains(assignment: _Form, expansion: Expansion) -> _Form:
    """Return an assignment of v1beta2 as v1beta1. A malformed assignment is returned unchanged.

    Raises:
        status.StatusError: the domains take more bytes than are left in the expansion.
    """
    slices = assignment.get("slices") or []
    if not isinstance(slices, list) or not all(map(_is_slice, slices)):
        return assignment
    expansion.take(sum(map(_expanded_bytes, slices)))
    domains = []
    for part in slices:
        for position in range(part["domainCount"]):
            counts = part["podCounts"]
            pods = counts["universal"] if "universal" in counts else counts["individual"][position]
            values = [_value(each, position) for each in part["valuesPerLevel"]]
            domains.append({"values": values, "count": pods})
    return {"levels": assignment.get("levels") or [], "domains": domains}


def _expanded_bytes(part: _Form) -> int:
    """Return about the bytes that the domains of a slice take in JSON."""
    count: int = part["domainCount"]
    size: int = count * (_DOMAIN_BYTES + _VALUE_BYTES * len(part["valuesPerLevel"]))
    for values in part["valuesPerLevel"]:
        if "universal" in values:
            size += count * len(values["universal"])
        else:
            own = values["individual"]
            shared = len(own.get("prefix", "")) + len(own.get("suffix", ""))
            size += count * shared + sum(len(str(root)) for root in own["roots"][:count])
    return size


def _has_form(levels: object, domains: object) -> bool:
    """Return True if levels and domains of v1beta1 can be converted to slices."""
    return (
        isinstance(levels, list)
        and isinstance(domains, list)
        and all(
            isinstance(each, Mapping)
            and type(each.get("count")) is int
            and isinstance(each.get("values"), list)
            and len(each["values"]) >= len(levels)
            and all(isinstance(value, str) for value in each["values"])
            for each in domains
        )
    )


def _is_slice(part: object) -> bool:
    """Return True if a slice of v1beta2 can be converted to domains."""
    if not isinstance(part, Mapping) or type(part.get("domainCount")) is not int or part["domainCount"] < 0:
        return False
    count, pods, levels = part["domainCount"], part.get("podCounts"), part.get("valuesPerLevel")
    if not isinstance(pods, Mapping) or not isinstance(levels, list) or len(levels) > _MOST_LEVELS:
        return False
    has_pods = type(pods.get("universal")) is int or _has_many(pods.get("individual"), count)
    return has_pods and all(_has_values(each, count) for each in levels)


def _has_values(values: object, count: int) -> bool:
    if not isinstance(values, Mapping):
        return False
    if "universal" in values:
        return _is_text(values["universal"])
    own = values.get("individual")
    return (
        isinstance(own, Mapping)
        and _has_many(own.get("roots"), count)
        and _is_text(own.get("prefix", ""))
        and _is_text(own.get("suffix", ""))
    )


def _has_many(values: object, count: int) -> bool:
    return isinstance(values, list) and len(values) >= count


def _is_text(value: object) -> bool:
    """Return True for a text that is short enough to be repeated for every domain."""
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _value(values: _Form, position: int) -> str:
    if "universal" in values:
        return str(values["universal"])
    own = values["individual"]
    return f"{own.get('prefix', '')}{own['roots'][position]}{own.get('suffix', '')}"


def _compress(values: Sequence[str]) -> dict[str, Any]:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    prefix = _common_prefix(values)
    suffix = _common_prefix([each[::-1] for each in values])[::-1]
    shortest = min(map(len, values))
    if len(prefix) + len(suffix) > shortest:
        # Prefix and suffix must not overlap in the shortest value.
        prefix = prefix[: shortest - len(suffix)]
    roots = [each[len(prefix) : len(each) - len(suffix)] for each in values]
    return {
        "individual": {
            **({"prefix": prefix} if prefix else {}),
            **({"suffix": suffix} if suffix else {}),
            "roots": roots,
        }
    }


def _common_prefix(values: Sequence[str]) -> str:
    """Return the longest common prefix."""
    first, last = min(values), max(values)
    for position, letter in enumerate(first):
        if position >= len(last) or last[position] != letter:
            return first[:position]
    return first
