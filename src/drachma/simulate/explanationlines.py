"""Explanations of pods and claims as lines of text, for commands and for tests that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drachma.allocator import explanation
from drachma.allocator.explanation import survey
from drachma.simulate.podexplanation import PodExplanation

_MOST_NAMES: Final = 8


def pod_lines(explained: PodExplanation) -> Iterator[str]:
    """Yield all lines of a pod's explanation, as a tree."""
    if explained.node:
        yield f"pod {explained.pod}: {'would go to' if explained.feasible else 'is on'} node {explained.node}"
        if explained.feasible > 1:
            yield f"  {explained.feasible} nodes are feasible"
        for device in explained.devices:
            yield f"  {device.claim}, {device.request}: {device.device}"
        return
    yield f"pod {explained.pod} is pending: {explained.message}"
    for entry in explained.ruled_out:
        nodes = _join_names(entry.nodes)
        yield f"  {_count_nodes(len(entry.nodes))}: {', '.join(entry.reasons)} ({entry.plugin}): {nodes}"
    yield from (f"  {shortage}" for shortage in explained.shortages)
    yield from (f"  {line}" for line in device_lines(explained))
    yield from (f"  hint: {hint}" for hint in explained.hints)
    if explained.victims:
        yield f"  preemption {explained.preemption}, and evict {_join_names(explained.victims)}"
        if explained.freed:
            yield f"    that frees {_join_names(explained.freed)}"
    elif explained.preemption:
        yield f"  {explained.preemption}"
    if explained.holders:
        yield f"  pods of lower priority hold devices on these nodes: {_join_names(explained.holders)}"
        yield "    preemption does not evict them, because a device is free when its claim is deallocated"
    for group in explained.helpful_groups:
        yield f"  one more node of group {group} would help"
    for group, reason in explained.useless_groups.items():
        yield f"  one more node of group {group} would not help: {reason}"


def device_lines(explained: PodExplanation) -> Iterator[str]:
    """Yield the lines about every device on nodes without suitable ones."""
    for report in explained.reports:
        yield from explanation.render(report.explanation).splitlines()
        if report.also_on:
            yield f"  the same on {_count_nodes(len(report.also_on))} more: {_join_names(report.also_on)}"
    if explained.unreported:
        nodes = _count_nodes(len(explained.unreported))
        yield f"{nodes} more, for other reasons: {_join_names(explained.unreported)}"


def survey_lines(surveyed: survey.Survey) -> Iterator[str]:
    """Yield the lines of a survey of nodes for a claim."""
    for each in surveyed.groups:
        yield from explanation.render(each.explanation).splitlines()
        if each.others:
            yield f"  the same on {_count_nodes(len(each.others))} more: {_join_names(each.others)}"
    if surveyed.unexplained:
        nodes = _count_nodes(len(surveyed.unexplained))
        yield f"{nodes} more, for other reasons: {_join_names(surveyed.unexplained)}"


def _count_nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _join_names(names: Sequence[str]) -> str:
    excess = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {excess} more" if excess > 0 else "")
