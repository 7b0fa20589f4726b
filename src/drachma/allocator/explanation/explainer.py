"""Explainer: combines the findings of this package into the explanation of why claims fit on a node or do not.

Called only on request, for claims that fit or do not. An allocation pays nothing for it: the explainer works afterwards
on the same catalog, state and compiled selectors.
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

    def explain(self, node: placement.Node, claims: Iterable[resourceclaim.ResourceClaim]) -> report.Explanation:
        """Explain the claims on this node with devices, conflict and changes."""
        all_claims = tuple(claims)
        trials = trial.Trials(self._source, node, limits=self._limits)
        analysis = self._analyse(node, all_claims, trials)
        conflict_report: report.Conflict | None = None
        changes: tuple[report.Change, ...] = ()
        if analysis.outcome is report.Outcome.DOES_NOT_FIT and analysis.description is not None:
            parts, minimal = conflict.find(all_claims, trials)
            conflict_report = report.Conflict(
                parts=conflict.describe(all_claims, parts),
                is_minimal=minimal,
                contentions=analysis.description.contentions(parts),
            )
            remedies = remedy.Remedies(
                self._source, all_claims, trials=trials, obstacles=analysis.description.obstacles
            )
            changes = remedies.find(parts, self._source.catalog.view(node, self._source.features))
        return report.Explanation(
            node=node.name,
            outcome=analysis.outcome,
            message=analysis.message,
            claims=analysis.claims if conflict_report is None else _combined(analysis.claims, conflict_report),
            conflict=conflict_report,
            changes=changes,
            is_complete=not trials.was_cut_short,
        )

    def outline(self, node: placement.Node, claims: Iterable[resourceclaim.ResourceClaim]) -> report.Explanation:
        """Explain without conflict and changes, which are most of the work. For comparing many nodes."""
        analysis = self._analyse(node, tuple(claims), None)
        return report.Explanation(
            node=node.name, outcome=analysis.outcome, message=analysis.message, claims=analysis.claims
        )

    def _analyse(self, node: placement.Node, claims: wish.Claims, trials: trial.Trials | None) -> _Analysis:
        search_budget = budget.Budget(self._limits)
        unknown = tuple(report.ClaimReport(name=identity.label(claim.metadata), requests=()) for claim in claims)
        try:
            problem = self._source.problem(node, claims, budget=search_budget)
        except errors.AllocationError as error:
            return _Analysis(report.Outcome.ERROR, str(error), unknown)
        except budget.ExhaustedError as error:
            return _Analysis(report.Outcome.GAVE_UP, str(error), unknown)
        outcome, message = _outcome(problem, search_budget)
        try:
            described = _Description(self._source, problem, claims=claims, budget=budget.Budget(self._limits))
        except budget.ExhaustedError as error:
            return _Analysis(outcome, message or str(error), unknown)
        beyond = self._beyond(problem.view)
        reports = tuple(described.claim(number, beyond=beyond, trials=trials) for number in range(len(claims)))
        return _Analysis(outcome, message, reports, described)

    def _beyond(self, view: views.View) -> tuple[report.Obstacle, ...]:
        if self._inventory is None or self._inventory.revision != self._source.catalog.revision:
            self._inventory = reach.Inventory(self._source.catalog)
        return self._inventory.beyond(view)


class _Description:
    """Fate of every device, request by request."""

    def __init__(
        self,
        source: allocators.Allocator,
        problem: problems.Problem,
        *,
        claims: wish.Claims,
        budget: budget.Budget,
    ) -> None:
        self._problem = problem
        self._claims = claims
        self.obstacles: remedy.Obstacles = {}
        inspector = obstacle.Inspector(source, problem, budget=budget)
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
                obstacle_cause = inspector.first_obstacle(option, position)
                if obstacle_cause is None:
                    usable |= 1 << position
                else:
                    causes.setdefault(obstacle_cause, []).append(position)
            self._usable[option] = usable
        self._agreements = [
            agreement.Agreement(source, problem, claim=number, usable=self._usable) for number in range(len(claims))
        ]
        for agreed in self._agreements:
            for rejection in agreed.rejections:
                self._causes[rejection.option].setdefault(rejection.cause, []).append(rejection.position)

    def contentions(self, parts: Iterable[wish.Part]) -> tuple[report.Contention, ...]:
        """Return the resources that the requests of these parts run short of; none if a request has alternatives."""
        involved = {(part.claim, part.request) for part in parts if part.request >= 0}
        options = [option for option, spot in self._spots.items() if (spot.claim, spot.request) in involved]
        if len(options) > len(involved):
            return ()
        return contention.find(self._problem, options, self._usable)

    def claim(
        self, number: int, *, beyond: tuple[report.Obstacle, ...], trials: trial.Trials | None
    ) -> report.ClaimReport:
        """Return the report on one claim. Without trials it does not say which requests fit alone."""
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
        own_obstacles = [
            report.Obstacle(cause=why, count=len(positions), devices=self._names(sorted(positions)[: reach.MAX_LISTED]))
            for why, positions in self._causes[option].items()
        ]
        obstacles = tuple(
            sorted((*own_obstacles, *beyond), key=lambda entry: cause.NEAREST_FIRST.index(type(entry.cause)))
        )
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


def _outcome(problem: problems.Problem, search_budget: budget.Budget) -> tuple[report.Outcome, str]:
    try:
        solution = search.search(problem, search_budget)
    except errors.AllocationError as error:
        return report.Outcome.ERROR, str(error)
    except budget.ExhaustedError as error:
        return report.Outcome.GAVE_UP, str(error)
    return (report.Outcome.DOES_NOT_FIT if solution is None else report.Outcome.FITS), ""


def _combined(claims: tuple[report.ClaimReport, ...], conflict: report.Conflict) -> tuple[report.ClaimReport, ...]:
    """Mark the usable devices of requests in the conflict as unusable in combination."""
    involved = {(part.claim, part.request) for part in conflict.parts if part.kind == "request"}
    return tuple(
        msgspec.structs.replace(
            claim,
            requests=tuple(
                msgspec.structs.replace(request, alternatives=tuple(map(_mark_combination, request.alternatives)))
                if (claim.name, request.name) in involved
                else request
                for request in claim.requests
            ),
        )
        for claim in claims
    )


def _mark_combination(way: report.AlternativeReport) -> report.AlternativeReport:
    if not way.usable or len(way.usable) < way.wanted:
        return way
    combination = report.Obstacle(
        cause=cause.InCombination(), count=len(way.usable), devices=way.usable[: reach.MAX_LISTED]
    )
    return msgspec.structs.replace(way, usable=(), obstacles=(combination, *way.obstacles))
