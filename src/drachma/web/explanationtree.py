"""Explanations as trees that templates draw: a sentence at each branch, details below it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.allocator.explanation import names, report, wording
from drachma.simulate.podexplanation import PodExplanation

_MOST_NAMES: Final = 200


class Branch(NamedTuple):
    """A sentence, the names that it is about, and the branches below it."""

    text: str
    branches: tuple[Branch, ...] = ()
    names: tuple[str, ...] = ()
    tone: str = ""
    """``good``, ``bad`` or empty."""


def node_branches(explained: PodExplanation) -> list[Branch]:
    """Return a branch for each reason that rules out nodes."""
    return [
        Branch(
            f"{_count(len(entry.nodes), 'node')}: {', '.join(entry.reasons)}",
            names=entry.nodes[:_MOST_NAMES],
            tone="bad",
            branches=(Branch(f"decided by the scheduler's plugin {entry.plugin}"),),
        )
        for entry in explained.ruled_out
    ]


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
        yield Branch(f"{total} of {way.considered}: {heading}", details, tone="bad")


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
