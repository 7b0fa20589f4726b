"""Whether a workload may be admitted by a queue at all, whatever quota there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.queueing.kinds import workload
from drachma.queueing.workloads import podadjustment
from drachma.values import fieldtext, labels, quotation

NAMESPACE_MISMATCH: Final = "workload namespace doesn't match ClusterQueue selector"


class Place(msgspec.Struct, frozen=True):
    """What a namespace means for its workloads: its labels, and its limit ranges as one."""

    labels: Mapping[str, str] = {}
    limits: podadjustment.Summary = {}


Places = Mapping[str, Place]
"""Namespaces by name."""


def objection(of: workload.Workload, takes: labels.Selector, places: Places) -> str | None:
    """Why a queue does not take a workload; None if it does."""
    namespace = of.metadata.namespace
    place = places.get(namespace)
    if place is None:
        quoted = quotation.quote(namespace)
        return f"workload namespace {quoted} does not exist: namespaces {quoted} not found"
    if not takes.matches(place.labels):
        return NAMESPACE_MISMATCH
    problems = tuple(podadjustment.check_requests(of))
    if problems:
        return f"resources validation failed: {fieldtext.together(map(str, problems))}"
    problems = tuple(podadjustment.check_limits(of, place.limits))
    if problems:
        return f"resources didn't satisfy LimitRange constraints: {fieldtext.together(map(str, problems))}"
    return None
