"""The search for nodes for PodGroups and CompositePodGroups. Pure.

A PodGroup is first tried as upstream does: its pods one after the other, each on the node that it would get by itself.
If too few of them fit, the gang search (:mod:`~drachma.scheduler.cycle.gangsearch`) tries other combinations. So a
group that upstream places gets the same nodes, and others may get nodes too. If none are found, the report is about the
first attempt, with upstream's messages.

With a topology constraint, all pods go to nodes of one domain: nodes with the same values of the labels. Every domain
is tried as if it were the whole cluster. Of several domains that fit, the one with the best score is chosen, as in
upstream: most pods of the group, and the fullest nodes. Pods of the group that have nodes fix the domain of those that
come later.

Constraints on the devices of all pods of a group are tried value by value
(:mod:`~drachma.scheduler.cycle.groupvariants`, :mod:`~drachma.scheduler.cycle.distinctsearch`).

The groups of a CompositePodGroup are placed one after the other in the order of their names, each on the cluster with
the earlier ones. That is not taken back: only inside a group other combinations are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from drachma.scheduler.cycle import distinctsearch, gangsearch, groupreport, groupvariants, podcycle
from drachma.scheduler.cycle.decision import Aborted, Placed, Unfit
from drachma.scheduler.framework import scoring
from drachma.scheduler.snapshot import Snapshot, agreements, gangs, nodeclass, nodeinfo, podinfo

Infos = Sequence[podinfo.PodInfo]


class _Placement(NamedTuple):
    """Nodes for enough pods of a group, or for enough groups."""

    placements: tuple[Placed, ...]
    surplus: tuple[Unfit, ...] = ()


_Result = _Placement | groupreport.GroupReport


class _AbortedError(Exception):
    def __init__(self, aborted: Aborted) -> None:
        super().__init__(aborted.message)
        self.aborted: Final = aborted


def search(
    cycle: podcycle.Cycle,
    snapshot: Snapshot,
    members: Infos,
    *,
    gang: gangs.Gang,
    steps: int,
    has_topology: bool,
) -> gangsearch.Outcome:
    """Return nodes for the waiting members of a PodGroup or CompositePodGroup, or a report why there are too few."""
    searcher = _GroupSearch(cycle, members, steps=steps, has_topology=has_topology)
    try:
        result = searcher.place(gang, snapshot, None)
    except _AbortedError as error:
        return error.aborted
    if isinstance(result, _Placement):
        return gangsearch.Together(result.placements, result.surplus)
    unfit = result.all_unfit
    return gangsearch.Short(
        unfit[0] if unfit else None, len(result.fitted), has_given_up=searcher.has_given_up, report=result
    )


class _GroupSearch:
    def __init__(self, cycle: podcycle.Cycle, members: Infos, *, steps: int, has_topology: bool) -> None:
        self._cycle: Final = cycle
        self._members: Final = members
        self._steps: Final = steps
        self._has_topology: Final = has_topology
        self.has_given_up = False

    def place(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        """Return nodes for a group in a domain, or the report about it."""
        if not gang.agreement:
            return self._place_freely(gang, snapshot, domain)
        result, best = self._place_agreeing(gang, snapshot, domain)
        if isinstance(result, _Placement):
            return result
        conflict = self._conflict(gang, snapshot, domain, best)
        return result._replace(message=", ".join(filter(None, (result.message, conflict))), conflict=conflict)

    # Agreements

    def _place_agreeing(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> tuple[_Result, str]:
        """Return the first variant in which the group fits, or a report with the variant that places most pods."""
        members = self._waiting(gang)
        best: groupreport.GroupReport | None = None
        title = ""
        for variant in groupvariants.variants(gang, gang.agreement, snapshot, members):
            result = self._place_freely(gang, variant.snapshot, domain)
            if isinstance(result, _Placement):
                return result, variant.title
            if best is None or len(result.fitted) > len(best.fitted):
                best, title = result, variant.title
        if best is None:
            best = self._untried(gang, groupreport.count_message(gang.size, self._resident_count(gang, snapshot), 0))
        return best, title

    def _conflict(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None, best: str) -> str:
        """Return the smallest set of constraints that the group does not fit with; nothing if it never fits."""
        if not isinstance(self._place_freely(gang._replace(agreement=agreements.NONE), snapshot, domain), _Placement):
            return ""
        agreement = gang.agreement
        position = 0
        while position < len(agreement.parts):
            smaller = agreement.without(position)
            result, _ = self._place_agreeing(gang._replace(agreement=smaller), snapshot, domain)
            if isinstance(result, _Placement):
                position += 1
            else:
                agreement = smaller
        parts = [name if rule is None else f"{name} {rule}" for name, rule in agreement.parts]
        text = f"the pods fit without {' and '.join(parts)}"
        return f"{text}, most of them fit with {best}" if best and agreement.match else text

    def _place_freely(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        """Return nodes for a group in a domain, or the report about it. Agreements about values are kept elsewhere."""
        if not self._has_topology:
            return self._place_anywhere(gang, snapshot, domain)
        domains = list(self._domains(gang, snapshot, domain))
        if not domains:
            uids = frozenset(info.uid for info in self._waiting(gang))
            return groupreport.GroupReport(gang.key, groupreport.NO_PLACEMENTS, members=uids)
        results = [self._try_in_order(gang, snapshot, each) for each in domains]
        if not any(isinstance(each, _Placement) for each in results) and not gang.children:
            results = [
                self._try_combinations(gang, snapshot, each, result, self._steps // len(domains))
                for each, result in zip(domains, results, strict=True)
            ]
        fitting = [
            (result, each) for result, each in zip(results, domains, strict=True) if isinstance(result, _Placement)
        ]
        if fitting:
            return self._best(gang, snapshot, fitting)
        first = results[0]
        assert isinstance(first, groupreport.GroupReport), "no placement is available"
        return first.over(len(domains))

    def _best(self, gang: gangs.Gang, snapshot: Snapshot, fitting: list[tuple[_Placement, int]]) -> _Placement:
        """Return the placement with the best score: pods of the group, as a share of the most, and scores of plugins.

        Of equal ones, that of the first domain is chosen. Upstream chooses at random.
        """
        if len(fitting) == 1:
            return fitting[0][0]
        nodes = snapshot.nodes
        residents = sum(nodes.node_of(uid) is not None for uid in gang.members)
        most = max(residents + len(result.placements) for result, _ in fitting)

        def score(pair: tuple[_Placement, int]) -> int:
            result, domain = pair
            share = (residents + len(result.placements)) * scoring.MAX // most if most else 0
            infos = [nodes.at(slot) for slot in nodeclass.slots(domain)]
            return share + self._cycle.score_placement([each.info for each in result.placements], infos)

        return max(fitting, key=score)[0]

    def _place_anywhere(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        result = self._try_in_order(gang, snapshot, domain)
        return result if gang.children else self._try_combinations(gang, snapshot, domain, result, self._steps)

    # One domain

    def _try_in_order(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        if gang.children:
            return self._try_children(gang, snapshot, domain)
        if gang.agreement.distinct:
            return self._try_distinct(gang, snapshot, domain)
        return self._try_pods(gang, snapshot, domain)

    def _try_distinct(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        """Place pods whose devices all have different values of some attributes, with backtracking."""
        waiting_pods = self._waiting(gang)
        searcher = distinctsearch.DistinctSearch(
            self._cycle, waiting_pods, gang=gang, needed=snapshot.missing(gang), steps=self._steps, domain=domain
        )
        try:
            placements = searcher.run(snapshot)
        except distinctsearch.AbortedError as error:
            raise _AbortedError(error.aborted) from error
        self.has_given_up |= searcher.has_given_up
        if placements is not None:
            uids = {each.info.uid for each in placements}
            return _Placement(placements, tuple(each for each in searcher.unfit if each.info.uid not in uids))
        fitted = frozenset(info.uid for info in searcher.best)
        scheduled = len(fitted) + self._resident_count(gang, snapshot)
        remaining = max(0, len(waiting_pods) - len(fitted) - len(searcher.unfit))
        return groupreport.GroupReport(
            gang.key,
            groupreport.count_message(gang.size, scheduled, remaining),
            tuple(each for each in searcher.unfit if each.info.uid not in fitted),
            fitted,
            frozenset(each.uid for each in waiting_pods),
        )

    def _try_pods(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        """Place the pods of a group one after the other, as long as enough of them are left."""
        waiting_pods = self._waiting(gang)
        needed = snapshot.missing(gang)
        fork = snapshot.fork()
        placements: list[Placed] = []
        unfit: list[Unfit] = []
        for position, info in enumerate(waiting_pods, start=1):
            decided = self._cycle.decide(info, fork, domain=domain)
            match decided:
                case Placed():
                    fork.commit(decided.assignment)
                    placements.append(decided)
                case Unfit():
                    unfit.append(decided)
                case Aborted():
                    raise _AbortedError(decided)
            remaining = len(waiting_pods) - position
            if len(placements) + remaining < needed:
                scheduled = len(placements) + self._resident_count(gang, snapshot)
                return groupreport.GroupReport(
                    gang.key,
                    groupreport.count_message(gang.size, scheduled, remaining),
                    tuple(unfit),
                    frozenset(each.info.uid for each in placements),
                    frozenset(each.uid for each in waiting_pods),
                )
        return _Placement(tuple(placements), tuple(unfit))

    def _try_combinations(
        self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None, result: _Result, steps: int
    ) -> _Result:
        """Search for nodes for a group that did not fit in order. Return the first result if that does not help."""
        if isinstance(result, _Placement) or gang.agreement.distinct:
            return result
        outcome = gangsearch.search(
            self._cycle,
            snapshot,
            self._waiting(gang),
            needed=snapshot.missing(gang),
            steps=steps,
            domain=domain,
        )
        match outcome:
            case gangsearch.Together():
                return _Placement(outcome.placements, outcome.surplus)
            case gangsearch.Short():
                self.has_given_up |= outcome.has_given_up
                return result
            case Aborted():
                raise _AbortedError(outcome)

    def _try_children(self, gang: gangs.Gang, snapshot: Snapshot, domain: int | None) -> _Result:
        """Place the groups of a composite one after the other, as long as enough of them are left."""
        fork = snapshot.fork()
        satisfied = [child for child in gang.children if snapshot.missing(child) <= 0]
        waiting_children = [child for child in gang.children if self._waiting(child)]
        scheduled = len([child for child in satisfied if child not in waiting_children])
        placed: list[_Placement] = []
        placed_children: list[gangs.Gang] = []
        reports: list[groupreport.GroupReport] = []
        for position, child in enumerate(waiting_children, start=1):
            result = self.place(child, fork, domain)
            if isinstance(result, _Placement):
                placed.append(result)
                placed_children.append(child)
                scheduled += 1
                for each in result.placements:
                    fork.commit(each.assignment)
            else:
                reports.append(result)
            remaining = len(waiting_children) - position
            if scheduled + remaining < gang.size:
                message = groupreport.count_message(gang.size, scheduled, remaining)
                untried = (self._untried(each, message) for each in waiting_children[position:])
                return groupreport.GroupReport(
                    gang.key,
                    message,
                    children=(*reports, *untried),
                    placed_children=tuple(placed_children),
                )
        placements = tuple(each for result in placed for each in result.placements)
        surplus = (*(each for result in placed for each in result.surplus), *_all_unfit(reports))
        return _Placement(placements, surplus)

    def _resident_count(self, gang: gangs.Gang, snapshot: Snapshot) -> int:
        """Return the number of pods of a group that have a node, or have succeeded."""
        return gang.size - snapshot.missing(gang)

    def _untried(self, gang: gangs.Gang, message: str) -> groupreport.GroupReport:
        members = frozenset(info.uid for info in self._waiting(gang))
        return groupreport.GroupReport(gang.key, message, members=members)

    def _waiting(self, gang: gangs.Gang) -> Infos:
        return [info for info in self._members if info.uid in gang.members]

    # Domains

    def _domains(self, gang: gangs.Gang, snapshot: Snapshot, allowed_nodes: int | None) -> Iterator[int]:
        """Yield the sets of nodes that the pods of a group may go to, in the order of the labels' values."""
        nodes = snapshot.nodes
        all_nodes = nodes.all_nodes if allowed_nodes is None else allowed_nodes
        if not gang.topology:
            if all_nodes:
                yield all_nodes
            return
        names = frozenset(name for uid in gang.members if (name := nodes.node_of(uid)) is not None)
        residents = nodes.named(names) if names else 0
        labels = gang.topology
        classes = nodes.properties.classes(("topology", labels), lambda info: _values(info, labels), among=all_nodes)
        for values in sorted(filter(None, classes)):
            here = classes[values] & all_nodes
            if here and not residents & ~here:
                yield here


def _values(info: nodeinfo.NodeInfo, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the values of labels of a node; none if one of them is absent."""
    stored_labels = info.node.metadata.labels
    return tuple(stored_labels[label] for label in labels) if all(each in stored_labels for each in labels) else ()


def _all_unfit(reports: Sequence[groupreport.GroupReport]) -> Iterator[Unfit]:
    for report in reports:
        yield from report.all_unfit
