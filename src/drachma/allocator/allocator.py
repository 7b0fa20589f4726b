"""Allocator: chooses the devices of a node for all claims of a pod, as kube-scheduler would.

Called by the scheduler for one node after the other, by queueing, by simulations and by the command line. It keeps
what it compiled and computed, so the same allocator should serve all claims of a cluster; the catalog, the classes and
the allocated state are its caller's, and are read as they are at the time of a call. Nothing that is passed in is ever
changed.

Errors are :class:`drachma.errors.AllocationError` with upstream's messages, about what upstream reports. "Does not
fit" and "gave up" are values: see :mod:`drachma.allocator.outcome`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from drachma import errors
from drachma.allocator import (
    allocated,
    catalog,
    expressions,
    noderoom,
    outcome,
    placement,
    result,
    screening,
    search,
)
from drachma.allocator import budget as budgets
from drachma.allocator import claim as claims
from drachma.allocator import classes as deviceclasses
from drachma.allocator import features as gates
from drachma.allocator import policy as policies
from drachma.allocator import problem as problems
from drachma.api import defaults, deviceclass, resourceclaim, resourceslice

_CLAIMS_REMEMBERED: Final = 10_000
_NO_LIMITS: Final = budgets.Limits()
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Time for defaults of claims, none of which depends on it."""


class Allocator:
    """Allocates from a catalog of slices, with one set of features."""

    def __init__(
        self,
        slices: catalog.Catalog,
        *,
        classes: deviceclasses.Classes,
        allocated: allocated.AllocatedState,
        compiler: expressions.Compiler,
        features: gates.Features,
        share_ids: Callable[[], str],
    ) -> None:
        """``share_ids`` gives a new ID for every share of a device; the compiler is for the same features."""
        self.catalog = slices
        self.classes = classes
        self.allocated = allocated
        self.features = features
        self._share_ids = share_ids
        self.screener = screening.Screener(compiler, features)
        self._claims: dict[int, claims.Claim] = {}

    def fork(
        self,
        slices: catalog.Catalog,
        *,
        classes: deviceclasses.Classes,
        allocated: allocated.AllocatedState,
    ) -> Allocator:
        """Return an allocator for another state of the same cluster. Both share compiled selectors."""
        fork = Allocator.__new__(Allocator)
        fork.__dict__.update(self.__dict__)
        fork.catalog = slices
        fork.classes = classes
        fork.allocated = allocated
        return fork

    def sibling(
        self,
        *,
        classes: deviceclasses.Classes | None = None,
        allocated: allocated.AllocatedState | None = None,
    ) -> Allocator:
        """Return an allocator for a what-if question with other classes or another state."""
        fork = self.fork(
            self.catalog,
            classes=self.classes if classes is None else classes,
            allocated=self.allocated if allocated is None else allocated,
        )
        fork._claims = {}
        return fork

    def allocate(
        self,
        node: placement.Node,
        claims: Iterable[resourceclaim.ResourceClaim],
        *,
        limits: budgets.Limits = _NO_LIMITS,
        policy: policies.Preference = policies.Policy.FIRST_FIT,
        room: noderoom.NodeRoom | None = None,
    ) -> outcome.Outcome:
        """Allocate all claims together on the node, or say why they do not fit.

        With another policy than the default, devices are tried in another order than upstream's. With a ``room``,
        devices that need more of the node's own resources than it has are passed over.

        Raises AllocationError for claims, classes and slices that upstream refuses, and its subclass InvalidPoolError
        where nothing fits and the node has invalid pools.
        """
        budget = budgets.Budget(limits)
        try:
            problem = self.problem(node, claims, budget=budget, policy=policy, room=room)
            solution = search.search(problem, budget)
        except budgets.ExhaustedError as error:
            return outcome.GaveUp(str(error), steps=budget.steps)
        if solution is None:
            if problem.view.invalid:
                raise errors.InvalidPoolError("invalid resource pools were encountered")
            return outcome.DoesNotFit(steps=budget.steps)
        results = result.build(problem, solution, features=self.features, share_ids=self._share_ids)
        return outcome.Allocated(results, steps=budget.steps)

    def problem(
        self,
        node: placement.Node,
        claims: Iterable[resourceclaim.ResourceClaim],
        *,
        budget: budgets.Budget,
        policy: policies.Preference = policies.Policy.FIRST_FIT,
        room: noderoom.NodeRoom | None = None,
    ) -> problems.Problem:
        """Return the search problem for callers that need more than the outcome."""
        view = self.catalog.view(node, self.features)
        all_claims = tuple(claims)
        if policy is not policies.Policy.FIRST_FIT:
            view = policies.arrange_view(view, self.allocated, policy, count=policies.count_devices(all_claims))
        setting = problems.Setting(self.classes, self.allocated, self.screener, budget)
        return problems.Problem(view, tuple([self._compiled(claim) for claim in all_claims]), setting, room=room)

    def _compiled(self, claim: resourceclaim.ResourceClaim) -> claims.Claim:
        # The compiled claim keeps the spec alive, so its identity cannot pass to another one.
        compiled = self._claims.get(id(claim.spec))
        if compiled is None or compiled.metadata is not claim.metadata:
            if len(self._claims) >= _CLAIMS_REMEMBERED:
                self._claims.clear()
            compiled = self._claims[id(claim.spec)] = claims.Claim(claim, self.features)
        return compiled


def allocate(
    claims: Iterable[resourceclaim.ResourceClaim],
    *,
    node: placement.Node,
    slices: Iterable[resourceslice.ResourceSlice],
    classes: Iterable[deviceclass.DeviceClass],
    in_use: Iterable[resourceclaim.ResourceClaim] = (),
    features: gates.Features = gates.ALL,
) -> outcome.Outcome:
    """Allocate claims together on one node, as kube-scheduler would, from the objects of a cluster.

    Claims get upstream's defaults. ``in_use`` are claims that have an allocation. Shares of devices get numbers as
    their IDs. Callers that ask more than once keep an :class:`Allocator` instead.

    Raises AllocationError for claims, classes and slices that upstream refuses.
    """
    from drachma.allocator import selectors

    numbers = itertools.count(1)
    return Allocator(
        catalog.Catalog(slices),
        classes=deviceclasses.Classes(classes),
        allocated=allocated.AllocatedState(in_use, consumable_capacity=features.consumable_capacity),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: str(next(numbers)),
    ).allocate(node, [defaults.apply(claim, now=_NO_TIME) for claim in claims])
