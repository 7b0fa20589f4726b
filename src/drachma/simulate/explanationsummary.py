"""Summary of a pod's explanation in ten lines: counts of nodes by reason, amounts, and the smallest fix. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from drachma.simulate.podexplanation import DeviceSupply, NodesRuledOut, PodExplanation

MOST_LINES: Final = 10
_MOST_REASONS: Final = 4
_DEVICES: Final = "DynamicResources"
_FIT: Final = "NodeResourcesFit"


def lines(explained: PodExplanation) -> Iterator[str]:
    """Yield at most ten lines about a pod that fits nowhere."""
    yield f"pod {explained.pod} is pending: {explained.message}"
    reasons = list(reason_lines(explained))
    remedies = list(_remedies(explained))
    room = max(MOST_LINES - 2 - len(remedies), 1)
    count = min(room, _MOST_REASONS) if len(reasons) > min(room, _MOST_REASONS) else len(reasons)
    yield from reasons[:count]
    yield from remedies[: MOST_LINES - 2 - count]
    hidden = len(reasons) - count
    also = f", and {hidden} more reasons" if hidden else ""
    yield f"  --verbose shows every node and device{also}"


def reason_lines(explained: PodExplanation) -> Iterator[str]:
    """Yield a line for each reason: hints first, then devices, resources and the other plugins of the scheduler."""
    for hint in explained.hints:
        yield f"  {hint}"
    yield from _supplies(explained.supplies)
    for supply in explained.resources:
        at_most = f"no node has more than {supply.most_free} free ({supply.most_free_on})"
        if supply.most_free == supply.largest:
            at_most = f"no node has more than {supply.largest}"
        yield f"  Insufficient {supply.resource}: {supply.wanted} asked for, {at_most}"
    for entry in explained.ruled_out:
        if entry.plugin == _DEVICES and (explained.supplies or explained.hints):
            continue
        if entry.plugin == _FIT and explained.resources:
            yield from _other_fit_reasons(entry)
            continue
        yield f"  {_count(len(entry.nodes), 'node')}: {', '.join(entry.reasons)}"


def _other_fit_reasons(entry: NodesRuledOut) -> Iterator[str]:
    other_reasons = [reason for reason in entry.reasons if not reason.startswith("Insufficient ")]
    if other_reasons:
        yield f"  {_count(len(entry.nodes), 'node')}: {', '.join(other_reasons)}"


def _supplies(supplies: Sequence[DeviceSupply]) -> Iterator[str]:
    """Yield counts of nodes by the devices that they have, the fullest last, and the most that any node has."""
    ordered = sorted(supplies, key=lambda each: (-each.free, -len(each.nodes)))
    full: list[DeviceSupply] = []
    for each in ordered:
        nodes = _count(len(each.nodes), "node")
        has = "has" if len(each.nodes) == 1 else "have"
        if each.free >= each.wanted:
            yield (
                f"  {nodes} {has} {each.free} free devices of class {each.class_name}, and {each.wanted} asked for "
                f"by request {each.request} cannot be combined"
            )
        elif not each.matching:
            yield f"  {nodes} {has} no device that matches request {each.request} (class {each.class_name})"
        elif not each.free and each.held == each.matching:
            full.append(each)
        else:
            unusable = each.matching - each.free - each.held
            details = [f"{each.held} in use"] * bool(each.held) + [f"{unusable} not usable"] * bool(unusable)
            after = f" ({', '.join(details)})" if details else ""
            yield (
                f"  {nodes} {has} {each.free} free of the {each.wanted} of class {each.class_name} asked for by "
                f"request {each.request}{after}"
            )
    if full:
        count = sum(len(each.nodes) for each in full)
        sizes = sorted({each.matching for each in full})
        size = f"all {sizes[0]}" if len(sizes) == 1 else f"all {sizes[0]} to {sizes[-1]}"
        yield f"  {_count(count, 'node')} {'is' if count == 1 else 'are'} full: {size} devices in use"
    most = max((each.matching for each in supplies), default=0)
    if supplies and 0 < most < min(each.wanted for each in supplies):
        yield f"  no node has more than {most} of them, used or free"


def _remedies(explained: PodExplanation) -> Iterator[str]:
    if explained.fix is not None:
        yield f"  smallest change: {explained.fix.text}"
        if explained.fix.command:
            yield f"    {explained.fix.command}"
    if explained.victims:
        yield f"  preemption {explained.preemption}, and evict {_several(explained.victims)}"
    if explained.helpful_groups:
        yield f"  one more node of group {_several(explained.helpful_groups)} would help"
    elif explained.useless_groups:
        yield f"  no node group would help: {_several(list(explained.useless_groups))}"


def _several(names: Iterable[str]) -> str:
    first, *names_left = names
    return f"{first} and {len(names_left)} more" if names_left else first


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
