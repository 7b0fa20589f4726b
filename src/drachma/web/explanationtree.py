"""Explanations for templates to draw: reasons, bars of nodes by reason, and trees with details below a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.allocator.explanation import names, report, wording
from drachma.simulate import explanationsummary
from drachma.simulate.podexplanation import DeviceSupply, PodExplanation

_MOST_NAMES: Final = 200
_DEVICES: Final = "DynamicResources"


class Branch(NamedTuple):
    """A sentence, the names that it is about, and the branches below it."""

    text: str
    branches: tuple[Branch, ...] = ()
    names: tuple[str, ...] = ()
    tone: str = ""
    """``good``, ``bad`` or empty."""
    share: float | None = None
    """Part of all devices that the sentence is about."""


class NodeBar(NamedTuple):
    """Nodes that are ruled out for one reason, and the part of all nodes that they are."""

    text: str
    number: int
    share: float
    names: tuple[str, ...]


def reasons(explained: PodExplanation) -> list[str]:
    """Return the reasons of ``drachma explain pod``, one sentence each."""
    return [line.strip() for line in explanationsummary.reason_lines(explained)]


def node_bars(explained: PodExplanation) -> list[NodeBar]:
    """Return the nodes by reason, the most nodes first. Nodes without suitable devices are split by free devices."""
    groups: list[tuple[str, tuple[str, ...]]] = []
    for entry in explained.ruled_out:
        if entry.plugin == _DEVICES and explained.supplies:
            groups += [(_supply_text(supply), supply.nodes) for supply in explained.supplies]
        else:
            groups.append((f"{', '.join(entry.reasons)} ({entry.plugin})", entry.nodes))
    total = explained.nodes or sum(len(names) for _, names in groups) or 1
    bars = [NodeBar(text, len(names), min(len(names) / total, 1.0), names[:_MOST_NAMES]) for text, names in groups]
    return sorted(bars, key=lambda bar: -bar.number)


def _supply_text(supply: DeviceSupply) -> str:
    if not supply.matching:
        return f"no device matches request {supply.request}"
    held = f", {supply.held} in use" if supply.held else ""
    return f"{supply.free} of the {supply.wanted} devices for request {supply.request} are free{held}"


def device_branch(explained: report.Explanation, also_on: Iterable[str] = ()) -> Branch:
    """Return the tree of one node: claims, requests, and what keeps each device away."""
    naming = names.Names(explained)
    branches = [Branch(f"claim {claim.name}", tuple(_claim(claim, naming)), tone="") for claim in explained.claims]
    if explained.conflict is not None and explained.conflict.parts:
        parts = explained.conflict.parts
        title = "This requirement cannot be met, even alone" if len(parts) == 1 else "These requirements conflict"
        listed = [Branch(wording.conflict_part(part)) for part in parts]
        listed += [Branch(f"they need {wording.contention(short)}") for short in explained.conflict.contentions]
        branches.append(Branch(title, tuple(listed), tone="bad"))
    others = tuple(also_on)
    fits = explained.outcome is report.Outcome.FITS
    more = f", and {_count(len(others), 'node')} like it" if others else ""
    message = f": {explained.message}" if explained.message else ""
    verb = {
        report.Outcome.FITS: "fits",
        report.Outcome.DOES_NOT_FIT: "does not fit",
        report.Outcome.GAVE_UP: "is undecided",
        report.Outcome.ERROR: "cannot be allocated",
    }[explained.outcome]
    where = f"node {explained.node}" if explained.node else "any node"
    return Branch(
        f"{where}{more}: {verb}{message}",
        tuple(branches),
        names=others[:_MOST_NAMES],
        tone="good" if fits else "bad",
    )


def _claim(claim: report.ClaimReport, naming: names.Names) -> Iterable[Branch]:
    for request in claim.requests:
        for way in request.alternatives:
            amount = f"all of class {way.class_name}" if way.everything else f"{way.wanted} of class {way.class_name}"
            yield Branch(f"request {way.name} wants {amount}", tuple(_way(way, naming)))
    for constraint in claim.constraints:
        values = tuple(
            Branch(
                f"{wording.value(value.value)}: "
                + ", ".join(f"{supply.request} has {supply.have} of {supply.want}" for supply in value.supplies),
                tone="good" if value.enough else "bad",
            )
            for value in constraint.values
        )
        verdict = "can be met" if constraint.satisfiable else "cannot be met"
        tone = "good" if constraint.satisfiable else "bad"
        yield Branch(
            f"constraint #{constraint.number}, {constraint.kind} {constraint.attribute}: {verdict}", values, tone=tone
        )


def _way(way: report.AlternativeReport, naming: names.Names) -> Iterable[Branch]:
    if way.usable:
        yield Branch(
            f"{len(way.usable)} of {way.considered} usable",
            names=tuple(map(naming.of, way.usable[:_MOST_NAMES])),
            tone="good",
            share=len(way.usable) / way.considered if way.considered else 0.0,
        )
    if not way.considered:
        yield Branch("there are no devices at all", tone="bad")
    groups: dict[str, list[report.Obstacle]] = {}
    for entry in way.obstacles:
        groups.setdefault(wording.heading(entry.cause), []).append(entry)
    for heading, obstacles in groups.items():
        total = sum(entry.count for entry in obstacles)
        details = tuple(
            Branch(
                wording.detail(entry.cause) or "these devices", names=tuple(map(naming.of, entry.devices[:_MOST_NAMES]))
            )
            for entry in obstacles
        )
        share = min(total / way.considered, 1.0) if way.considered else 0.0
        yield Branch(f"{total} of {way.considered}: {heading}", details, tone="bad", share=share)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
