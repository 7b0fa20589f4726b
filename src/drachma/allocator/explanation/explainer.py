"""Explainer: why claims fit on a node or do not, put together from what the other modules of this package find out.

Called only when somebody asks, for claims that do not fit or for any others. Nothing of this costs an allocation
anything: the explainer works on the same catalog, state and compiled selectors, afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.allocator import allocator as allocators
from drachma.allocator import budget, placement, search
from drachma.allocator import problem as problems
from drachma.allocator import view as views
from drachma.allocator.explanation import (
    agreement,
    cause,
    conflict,
    contention,
    obstacle,
    reach,
    remedy,
    report,
    trial,
    wish,
)
from drachma.api import resourceclaim
from drachma.claims import identity

DEFAULT_LIMITS: Final = budget.Limits(steps=trial.DEFAULT_STEPS)


class _Analysis(NamedTuple):
    outcome: report.Outcome
    message: str = ""
    claims: tuple[report.ClaimReport, ...] = ()
    description: _Description | None = None


class Explainer:
    """Explains what an allocator answers."""

    def __init__(self, source: allocators.Allocator, *, limits: budget.Limits = DEFAULT_LIMITS) -> None:
        """``limits`` are for one explanation with all its trials."""
        self._source = source
        self._limits = limits
        self._inventory: reach.Inventory | None = None

    def explain(self, node: placement.Node, wanted: Iterable[resourceclaim.ResourceClaim]) -> report.Explanation:
        """Everything about these claims on this node: devices, conflict and changes."""
        claims = tuple(wanted)
        trials = trial.Trials(self._source, node, limits=self._limits)
        analysis = self._analyse(node, claims, trials)
        found: report.Conflict | None = None
        changes: tuple[report.Change, ...] = ()
        if analysis.outcome is report.Outcome.DOES_NOT_FIT and analysis.description is not None:
            parts, minimal = conflict.find(claims, trials)
            found = report.Conflict(
                parts=conflict.describe(claims, parts),
                is_minimal=minimal,
                contentions=analysis.description.contentions(parts),
            )
            remedies = remedy.Remedies(self._source, claims, trials=trials, obstacles=analysis.description.obstacles)
            changes = remedies.find(parts, self._source.catalog.view(node, self._source.features))
        return report.Explanation(
            node=node.name,
            outcome=analysis.outcome,
            message=analysis.message,
            claims=analysis.claims if found is None else _combined(analysis.claims, found),
            conflict=found,
            changes=changes,
            is_complete=not trials.was_cut_short,
        )

    def outline(self, node: placement.Node, wanted: Iterable[resourceclaim.ResourceClaim]) -> report.Explanation:
        """The same without conflict and changes, which are most of the work; for comparing many nodes."""
        analysis = self._analyse(node, tuple(wanted), None)
        return report.Explanation(
            node=node.name, outcome=analysis.outcome, message=analysis.message, claims=analysis.claims
        )

    def _analyse(self, node: placement.Node, claims: wish.Claims, trials: trial.Trials | None) -> _Analysis:
        spent = budget.Budget(self._limits)
        unknown = tuple(report.ClaimReport(name=identity.label(claim.metadata), requests=()) for claim in claims)
        try:
            problem = self._source.problem(node, claims, spent=spent)
        except errors.AllocationError as error:
            return _Analysis(report.Outcome.ERROR, str(error), unknown)
        except budget.ExhaustedError as error:
            return _Analysis(report.Outcome.GAVE_UP, str(error), unknown)
        outcome, message = _outcome(problem, spent)
        try:
            described = _Description(self._source, problem, claims=claims, spent=budget.Budget(self._limits))
        except budget.ExhaustedError as error:
            return _Analysis(outcome, message or str(error), unknown)
        beyond = self._beyond(problem.view)
        reports = tuple(described.claim(number, beyond=beyond, trials=trials) for number in range(len(claims)))
        return _Analysis(outcome, message, reports, described)

    def _beyond(self, shown: views.View) -> tuple[report.Obstacle, ...]:
        if self._inventory is None or self._inventory.revision != self._source.catalog.revision:
            self._inventory = reach.Inventory(self._source.catalog)
        return self._inventory.beyond(shown)


class _Description:
    """What became of every device, request by request."""

    def __init__(
        self,
        source: allocators.Allocator,
        problem: problems.Problem,
        *,
        claims: wish.Claims,
        spent: budget.Budget,
    ) -> None:
        self._problem = problem
        self._claims = claims
        self.obstacles: remedy.Obstacles = {}
        inspector = obstacle.Inspector(source, problem, spent=spent)
        everything = sum(len(block.devices) for block in problem.view.blocks)
        self._size = everything
        self._spots: dict[problems.Option, wish.Spot] = {}
        self._usable: dict[problems.Option, int] = {}
        self._causes: dict[problems.Option, dict[cause.Cause, list[int]]] = {}
        for option, spot in _spots(problem):
            self._spots[option] = spot
            causes = self._causes[option] = {}
            usable = 0
            for position in range(everything):
                found = inspector.first_obstacle(option, position)
                if found is None:
                    usable |= 1 << position
                else:
                    causes.setdefault(found, []).append(position)
            self._usable[option] = usable
        self._agreements = [
            agreement.Agreement(source, problem, claim=number, usable=self._usable) for number in range(len(claims))
        ]
        for agreed in self._agreements:
            for rejection in agreed.rejections:
                self._causes[rejection.option].setdefault(rejection.cause, []).append(rejection.position)

    def contentions(self, parts: Iterable[wish.Part]) -> tuple[report.Contention, ...]:
        """What the requests among these parts run short of; nothing is said where some have alternatives."""
        involved = {(part.claim, part.request) for part in parts if part.request >= 0}
        options = [option for option, spot in self._spots.items() if (spot.claim, spot.request) in involved]
        if len(options) > len(involved):
            return ()
        return contention.find(self._problem, options, self._usable)

    def claim(
        self, number: int, *, beyond: tuple[report.Obstacle, ...], trials: trial.Trials | None
    ) -> report.ClaimReport:
        """The report on one claim; without trials it is not known what would fit alone."""
        claim = self._claims[number]
        levels = [level for level in self._problem.levels if level.claim == number]
        requests = tuple(
            report.RequestReport(
                name=level.options[0].way.request_name,
                alternatives=tuple(self._alternative(option, beyond=beyond, trials=trials) for option in level.options),
                is_choice=level.is_choice,
            )
            for level in levels
        )
        return report.ClaimReport(
            name=identity.label(claim.metadata), requests=requests, constraints=self._agreements[number].reports
        )

    def _alternative(
        self, option: problems.Option, *, beyond: tuple[report.Obstacle, ...], trials: trial.Trials | None
    ) -> report.AlternativeReport:
        spot = self._spots[option]
        found = [
            report.Obstacle(cause=why, count=len(positions), devices=self._names(sorted(positions)[: reach.MAX_LISTED]))
            for why, positions in self._causes[option].items()
        ]
        obstacles = tuple(sorted((*found, *beyond), key=lambda entry: cause.NEAREST_FIRST.index(type(entry.cause))))
        self.obstacles[spot] = obstacles
        way = option.way
        return report.AlternativeReport(
            name=way.full_name,
            class_name=way.class_name,
            wanted=option.count,
            everything=way.everything,
            admin_access=way.admin_access,
            considered=self._size + sum(entry.count for entry in beyond),
            usable=self._names(views.positions(self._usable[option])),
            obstacles=obstacles,
            alone=report.Verdict.UNKNOWN if trials is None else trials.run(wish.only(self._claims, spot)),
        )

    def _names(self, positions: Iterable[int]) -> tuple[str, ...]:
        return tuple(str(self._problem.view.device_id(position)) for position in positions)


def _spots(problem: problems.Problem) -> Iterable[tuple[problems.Option, wish.Spot]]:
    places: dict[int, int] = {}
    for level in problem.levels:
        place = places.setdefault(level.claim, 0)
        places[level.claim] += 1
        for number, option in enumerate(level.options):
            yield option, wish.Spot(level.claim, place, number)


def _outcome(problem: problems.Problem, spent: budget.Budget) -> tuple[report.Outcome, str]:
    try:
        solution = search.search(problem, spent)
    except errors.AllocationError as error:
        return report.Outcome.ERROR, str(error)
    except budget.ExhaustedError as error:
        return report.Outcome.GAVE_UP, str(error)
    return (report.Outcome.DOES_NOT_FIT if solution is None else report.Outcome.FITS), ""


def _combined(claims: tuple[report.ClaimReport, ...], found: report.Conflict) -> tuple[report.ClaimReport, ...]:
    """The reports, with enough devices of a request that is part of the conflict seen as what they are: not enough."""
    involved = {(part.claim, part.request) for part in found.parts if part.kind == "request"}
    return tuple(
        msgspec.structs.replace(
            claim,
            requests=tuple(
                msgspec.structs.replace(request, alternatives=tuple(map(_in_combination, request.alternatives)))
                if (claim.name, request.name) in involved
                else request
                for request in claim.requests
            ),
        )
        for claim in claims
    )


def _in_combination(way: report.AlternativeReport) -> report.AlternativeReport:
    if not way.usable or len(way.usable) < way.wanted:
        return way
    found = report.Obstacle(cause=cause.InCombination(), count=len(way.usable), devices=way.usable[: reach.MAX_LISTED])
    return msgspec.structs.replace(way, usable=(), obstacles=(found, *way.obstacles))
