"""Topology assignments: the domains of a pod set with the number of pods in each, and their compact form in the API.

The compact form is a list of slices. A slice has, for each level, one value for all its domains, or the roots of the
values between their common prefix and suffix. Hostnames are split into slices by prefixes that end in a dash, as node
pools name their nodes, if that makes the form shorter.
"""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.queueing.workloads.placedpods import DomainCount

HOSTNAME: Final = "kubernetes.io/hostname"

_MOST_DOMAINS: Final = 100_000
"""Most domains of a slice."""
_MOST_SLICES: Final = 1000

Document = Mapping[str, Any]


class Assignment(NamedTuple):
    """Domains of a pod set, in the order of their level values."""

    levels: tuple[str, ...]
    domains: tuple[DomainCount, ...]

    @property
    def pods(self) -> int:
        """Number of assigned pods."""
        return sum(domain.pods for domain in self.domains)

    def truncate(self, count: int) -> Assignment:
        """Keep the first ``count`` pods."""
        remainder = count
        domains = []
        for domain in self.domains:
            if remainder <= 0:
                break
            domains.append(domain._replace(pods=min(domain.pods, remainder)))
            remainder -= domain.pods
        return self._replace(domains=tuple(domains))


def decode(document: Document) -> Assignment:
    """Read the compact form."""
    levels = tuple(document["levels"])
    return Assignment(levels, tuple(_decode_slices(document.get("slices") or (), len(levels))))


def _decode_slices(slices: Iterable[Document], level_count: int) -> Iterator[DomainCount]:
    for slice_ in slices:
        size = slice_["domainCount"]
        values = slice_["valuesPerLevel"][:level_count]
        counts = slice_["podCounts"]
        universal = counts.get("universal")
        if all("universal" in column for column in values):
            # All domains are one. It is not repeated, because the count is not limited by the length of a list.
            pods = sum(counts["individual"]) if universal is None else universal * size
            yield DomainCount(tuple(column["universal"] for column in values), pods)
            continue
        columns = [_decode_values(column, size) for column in values]
        yield from map(
            DomainCount,
            zip(*columns, strict=True),
            counts["individual"] if universal is None else itertools.repeat(universal, size),
        )


def _decode_values(column: Document, size: int) -> list[str]:
    individual = column.get("individual")
    if individual is None:
        return [column["universal"]] * size
    prefix, suffix = individual.get("prefix") or "", individual.get("suffix") or ""
    return [f"{prefix}{root}{suffix}" for root in individual["roots"]]


def encode(assignment: Assignment, *, by_hostname_prefix: bool = True) -> dict[str, Any]:
    """Return the compact form. Without domains it has no slices, which the API would refuse."""
    if not assignment.domains:
        return {"levels": list(assignment.levels)}
    single = _document(assignment, [assignment.domains])
    if not by_hostname_prefix:
        return single
    runs = [
        run[begin : begin + _MOST_DOMAINS]
        for run in _prefix_runs(assignment)
        for begin in range(0, len(run), _MOST_DOMAINS)
    ]
    if len(runs) == 1:
        return single
    split = _document(assignment, runs)
    if len(assignment.domains) > _MOST_DOMAINS:
        return split
    return single if _json_size(single) < _json_size(split) else split


def _document(assignment: Assignment, runs: Iterable[Sequence[DomainCount]]) -> dict[str, Any]:
    return {"levels": list(assignment.levels), "slices": [_encode_slice(run) for run in runs]}


def _encode_slice(domains: Sequence[DomainCount]) -> dict[str, Any]:
    counts = [domain.pods for domain in domains]
    pods = {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts}
    columns = zip(*(domain.values for domain in domains), strict=True)
    return {
        "domainCount": len(domains),
        "podCounts": pods,
        "valuesPerLevel": [_encode_values(list(column)) for column in columns],
    }


def _encode_values(column: list[str]) -> dict[str, Any]:
    least, most = min(column), max(column)
    if least == most:
        return {"universal": least}
    prefix = _common_prefix(least, most)
    suffix = _common_suffix(column)
    shortest = min(map(len, column))
    if len(prefix) + len(suffix) > shortest:
        prefix = prefix[: shortest - len(suffix)]
    individual: dict[str, Any] = {}
    if prefix:
        individual["prefix"] = prefix
    if suffix:
        individual["suffix"] = suffix
    begin, end = len(prefix), -len(suffix) or None
    individual["roots"] = [value[begin:end] for value in column]
    return {"individual": individual}


def _common_prefix(first: str, second: str) -> str:
    """Return the common prefix of two texts. For the first and last of sorted texts it is that of all of them."""
    length = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        length += 1
    return first[:length]


def _common_suffix(values: Iterable[str]) -> str:
    """Return the common suffix of texts."""
    iterator = iter(values)
    suffix = next(iterator)
    for value in iterator:
        while not value.endswith(suffix):
            suffix = suffix[1:]
        if not suffix:
            break
    return suffix


def _prefix_runs(assignment: Assignment) -> list[Sequence[DomainCount]]:
    """Split the domains into runs of neighbours whose hostnames share a prefix."""
    domains = assignment.domains
    if len(domains) < 2 or assignment.levels[-1:] != (HOSTNAME,):
        return [domains]
    # Nodes of a pool have the same longest prefix, so that there are few.
    hostnames = [domain.values[-1] for domain in domains]
    longest = [hostname[: hostname.rfind("-", 0, -1) + 1] for hostname in hostnames]
    prefixes = {prefix: _dashed_prefixes(prefix) for prefix in dict.fromkeys(longest)}
    uses: collections.Counter[str] = collections.Counter()
    for prefix, count in collections.Counter(longest).items():
        uses.update(dict.fromkeys(prefixes[prefix], count))
    for depth in range(max(map(len, prefixes.values())), 0, -1):
        keys = {
            prefix: next((each for each in reversed(shorter[:depth]) if uses[each] > 1), "")
            for prefix, shorter in prefixes.items()
        }
        runs = _group(domains, [keys[prefix] for prefix in longest])
        if sum(-(-len(run) // _MOST_DOMAINS) for run in runs) <= _MOST_SLICES:
            return runs
    return [domains]


def _dashed_prefixes(prefix: str) -> list[str]:
    """Return the prefixes of a prefix that end in a dash, the shortest first, and the prefix itself."""
    return [prefix[: end + 1] for end, character in enumerate(prefix) if character == "-"]


def _group(domains: Sequence[DomainCount], keys: Sequence[str]) -> list[Sequence[DomainCount]]:
    runs: list[Sequence[DomainCount]] = []
    begin = 0
    for _, run in itertools.groupby(keys):
        end = begin + sum(1 for _ in run)
        runs.append(domains[begin:end])
        begin = end
    return runs


def _json_size(document: Mapping[str, Any]) -> int:
    return len(json.dumps(document, separators=(",", ":")))
