"""Allocator: the front door. Which devices of a node satisfy all claims of a pod, chosen as kube-scheduler would.

Called by the scheduler for one node after the other, by queueing, by simulations and by the command line. It keeps
what it compiled and computed, so the same allocator should serve all claims of a cluster; the catalog, the classes and
the allocated state are its caller's, and are read as they are at the time of a call. Nothing that is passed in is ever
changed.

Errors are :class:`drachma.errors.AllocationError` with upstream's messages, about what upstream reports. "Does not
fit" and "gave up" are values: see :mod:`drachma.allocator.outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from drachma import errors
from drachma.allocator import allocated, budget, catalog, expressions, outcome, placement, result, screening, search
from drachma.allocator import claim as claims
from drachma.allocator import classes as deviceclasses
from drachma.allocator import features as gates
from drachma.allocator import policy as policies
from drachma.allocator import problem as problems
from drachma.api import resourceclaim

_CLAIMS_REMEMBERED: Final = 10_000
_NO_LIMITS: Final = budget.Limits()


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
        """An allocator for another state of the same cluster, which shares what is compiled already."""
        other = Allocator.__new__(Allocator)
        other.__dict__.update(self.__dict__)
        other.catalog = slices
        other.classes = classes
        other.allocated = allocated
        return other

    def sibling(
        self,
        *,
        classes: deviceclasses.Classes | None = None,
        allocated: allocated.AllocatedState | None = None,
    ) -> Allocator:
        """An allocator for what-if questions: other classes or another state, and what is compiled already."""
        other = self.fork(
            self.catalog,
            classes=self.classes if classes is None else classes,
            allocated=self.allocated if allocated is None else allocated,
        )
        other._claims = {}
        return other

    def allocate(
        self,
        node: placement.Node,
        wanted: Iterable[resourceclaim.ResourceClaim],
        *,
        limits: budget.Limits = _NO_LIMITS,
        policy: policies.Preference = policies.Policy.FIRST_FIT,
    ) -> outcome.Outcome:
        """Results for all claims together on the node, or why not.

        With another policy than the default, devices are tried in another order than upstream's.

        Raises AllocationError for claims, classes and slices that upstream refuses, and its subclass InvalidPoolError
        where nothing fits and the node has invalid pools.
        """
        spent = budget.Budget(limits)
        try:
            problem = self.problem(node, wanted, spent=spent, policy=policy)
            solution = search.search(problem, spent)
        except budget.ExhaustedError as error:
            return outcome.GaveUp(str(error), steps=spent.steps)
        if solution is None:
            if problem.view.invalid:
                raise errors.InvalidPoolError("invalid resource pools were encountered")
            return outcome.DoesNotFit(steps=spent.steps)
        results = result.build(problem, solution, features=self.features, share_ids=self._share_ids)
        return outcome.Allocated(results, steps=spent.steps)

    def problem(
        self,
        node: placement.Node,
        wanted: Iterable[resourceclaim.ResourceClaim],
        *,
        spent: budget.Budget,
        policy: policies.Preference = policies.Policy.FIRST_FIT,
    ) -> problems.Problem:
        """What a search would have to decide; for those who want to know more than whether it fits."""
        shown = self.catalog.view(node, self.features)
        claims = tuple(wanted)
        if policy is not policies.Policy.FIRST_FIT:
            shown = policies.arranged(shown, self.allocated, policy, wanted=policies.wanted(claims))
        setting = problems.Setting(self.classes, self.allocated, self.screener, spent)
        return problems.Problem(shown, tuple([self._compiled(claim) for claim in claims]), setting)

    def _compiled(self, claim: resourceclaim.ResourceClaim) -> claims.Claim:
        # The compiled claim keeps the spec alive, so its identity cannot pass to another one.
        known = self._claims.get(id(claim.spec))
        if known is None or known.metadata is not claim.metadata:
            if len(self._claims) >= _CLAIMS_REMEMBERED:
                self._claims.clear()
            known = self._claims[id(claim.spec)] = claims.Claim(claim, self.features)
        return known
