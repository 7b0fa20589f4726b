"""Outlook: bounds that show in advance that a part of a search leads nowhere.

Made once per careful search. All bounds are relaxations: they say no only where nothing can be found. They look
ahead and skip errors that a search would meet on its way. They are therefore used only from a level on that can no
longer meet an error (:attr:`Outlook.quiet`).
"""

from __future__ import annotations

from drachma.allocator import attributes, cohorts, matching, scarcity
from drachma.allocator import problem as problems
from drachma.allocator import view as views

_ELEMENTS_LOOKED_AT = 1024
_ROUNDS = 3


class Outlook:
    """Bounds of a problem that need no search."""

    def __init__(self, problem: problems.Problem) -> None:
        self.problem = problem
        self._options = [option for level in problem.levels for option in level.options]
        self.candidates = {option: option.candidates for option in self._options}
        """Devices worth trying, by option."""
        self.quiet = _quiet_levels(problem)
        """True for each level from which on the search cannot end with an error."""
        for number in range(len(problem.claims)):
            self._prune(number)
        self.scarcity = scarcity.Scarcity(problem, self.candidates)
        self._cohorts = cohorts.Cohorts(problem, self.candidates)
        self._distinct = [any(entry.distinct for entry in claim.constraints) for claim in problem.claims]
        self._demands = [self._demand(level) for level in problem.levels]
        self._later = self._later_demands()
        self.hopeless = bool(problem.levels) and self.quiet[0] and not self._can_start()
        """True if nothing fits."""

    def promising(
        self, option: problems.Option, choices: int, *, more: int, in_use: int, constraint_state: tuple[int, ...]
    ) -> bool:
        """Return True if the numbers allow the rest of an option and all levels after it.

        ``rest`` are the devices that the option may still choose ``more`` from. Only for quiet levels.
        """
        demands: list[matching.Demand] = []
        if more and option.listed is None:
            choices = self._agreeing(option, choices, constraint_state)
            if option.way.admin_access or choices & self.problem.shared:
                if choices.bit_count() < more:
                    return False
            else:
                demands.append((choices & ~in_use, more))
        levels = self.problem.levels
        depth = option.level + 1
        while depth < len(levels) and levels[depth].claim == option.claim:
            demand = self._demand_of(levels[depth], in_use=in_use, constraint_state=constraint_state)
            if demand is None:
                return False
            demands.append(demand)
            depth += 1
        if self._distinct[option.claim] and not self._can_differ(
            option, choices, more=more, constraint_state=constraint_state, in_use=in_use
        ):
            return False
        if not self._cohorts.can_agree(depth, in_use):
            return False
        demands += ((units & ~in_use, needed) for units, needed in self._later[depth])
        return matching.can_serve(demands)

    def _demand_of(
        self, level: problems.Level, *, in_use: int, constraint_state: tuple[int, ...]
    ) -> matching.Demand | None:
        """Return the demand of a later level of the same claim, or None if it cannot be met."""
        union = 0
        least = -1
        is_countable = True
        for option in level.options:
            units = self._agreeing(option, self.candidates[option], constraint_state)
            if not option.way.admin_access:
                units &= ~in_use
            if units.bit_count() < option.count or (option.listed is not None and not option.count):
                continue
            is_countable = is_countable and self._is_countable(option)
            union |= units
            least = option.count if least < 0 else min(least, option.count)
        if least < 0:
            return None
        return (union, least) if is_countable else (0, 0)

    def _can_differ(
        self, option: problems.Option, choices: int, *, more: int, constraint_state: tuple[int, ...], in_use: int
    ) -> bool:
        """Return True if enough values are left for all that a claim's distinct constraints still cover."""
        demands: dict[int, list[matching.Demand]] = {}
        if option.listed is None:
            for check in option.checks:
                if check.distinct and more:
                    elements = check.elements(choices) & ~constraint_state[check.number]
                    demands.setdefault(check.number, []).append((elements, more))
        for level in self.problem.levels[option.level + 1 :]:
            if level.claim != option.claim:
                break
            later = level.options[0]
            if level.is_choice or not later.checks:
                continue
            units = self._agreeing(later, self.candidates[later], constraint_state)
            for check in later.checks:
                if check.distinct:
                    elements = check.elements(units) & ~constraint_state[check.number]
                    demands.setdefault(check.number, []).append((elements, later.count))
        return all(matching.can_serve(demand) for demand in demands.values())

    def _can_start(self) -> bool:
        first = self.problem.levels[0]
        in_use = self.problem.taken
        for level in self.problem.levels:
            if not any(
                (self.candidates[option] & (-1 if option.way.admin_access else ~in_use)).bit_count() >= option.count
                and (option.count > 0 or option.listed is None)
                for option in level.options
            ):
                return False
        if not any(self.scarcity.affordable(option, self.problem.left, more=option.count) for option in first.options):
            return False
        if not all(self._has_distinct_values(number) for number in range(len(self.problem.claims))):
            return False
        if not self._has_capacity() or not self._cohorts.can_agree(0, in_use):
            return False
        return matching.can_serve((units & ~in_use, needed) for units, needed in self._later[0])

    def _has_distinct_values(self, claim: int) -> bool:
        """Return True if every distinct constraint of a claim has enough different values."""
        demands: dict[int, list[matching.Demand]] = {}
        for level in self.problem.levels:
            if level.claim != claim or level.is_choice:
                continue
            option = level.options[0]
            for check in option.checks:
                if check.distinct:
                    elements = check.elements(self.candidates[option])
                    demands.setdefault(check.number, []).append((elements, option.count))
        return all(matching.can_serve(demand) for demand in demands.values())

    def _has_capacity(self) -> bool:
        """Return True if shared devices have enough capacity for all requests that can only have a share."""
        demand: dict[str, int] = {}
        supply: dict[str, dict[int, int]] = {}
        for level in self.problem.levels:
            option = level.options[0]
            units = self.candidates[option]
            if level.is_choice or option.listed is not None or not units or units & ~self.problem.shared:
                continue
            needs: dict[str, list[int]] = {}
            for position in views.positions(units):
                amounts, available = self.problem.room(option, position)
                names = option.shape.amounts(self.problem.view.device(position)) or {}
                for name, amount, remainder in zip(names, amounts, available, strict=True):
                    supply.setdefault(name, {})[position] = remainder
                    needs.setdefault(name, []).append(amount)
            for name, amounts_of_all in needs.items():
                # A device without the capacity would need none of it.
                if len(amounts_of_all) == units.bit_count():
                    demand[name] = demand.get(name, 0) + min(amounts_of_all) * option.count
        return all(amount <= sum(supply[name].values()) for name, amount in demand.items())

    def _prune(self, claim: int) -> None:
        """Drop the candidates whose value in a match constraint not all requests can agree on."""
        depths = [depth for depth, level in enumerate(self.problem.levels) if level.claim == claim]
        numbers = range(len(self.problem.claims[claim].constraints))
        for _ in range(_ROUNDS):
            changes = [self._prune_by(number, depths) for number in numbers]
            if not any(changes):
                break

    def _prune_by(self, number: int, depths: list[int]) -> bool:
        covered = [
            (option, check)
            for depth in depths
            for option in self.problem.levels[depth].options
            for check in option.checks
            if check.number == number and not check.distinct
        ]
        everything = 0
        for option, check in covered:
            everything |= check.elements(self.candidates[option])
        if not covered or everything.bit_count() > _ELEMENTS_LOOKED_AT:
            return False
        agreed = 0
        for place in views.positions(everything):
            if self._can_agree(number, 1 << place, depths):
                agreed |= 1 << place
        changed = False
        for option, check in covered:
            if self.quiet[option.level]:
                agreeing = self.candidates[option] & check.holding(agreed)
                changed = changed or agreeing != self.candidates[option]
                self.candidates[option] = agreeing
        return changed

    def _can_agree(self, number: int, element: int, depths: list[int]) -> bool:
        """Return True if all requests of a claim could share this element of an attribute."""
        demands: list[matching.Demand] = []
        for depth in depths:
            level = self.problem.levels[depth]
            supplies: list[int] = []
            for option in level.options:
                units = self.candidates[option]
                if not option.way.admin_access:
                    units &= ~self.problem.taken
                for check in option.checks:
                    if check.number == number:
                        units &= check.holding(element)
                supplies.append(units)
                if option.listed is not None or units.bit_count() >= option.count:
                    break
            else:
                return False
            only = level.options[0]
            if not level.is_choice and self._is_countable(only):
                demands.append((supplies[0], only.count))
        return matching.can_serve(demands)

    def _agreeing(self, option: problems.Option, units: int, constraint_state: tuple[int, ...]) -> int:
        for check in option.checks:
            common = constraint_state[check.number]
            if not check.distinct and common != attributes.ALL_ELEMENTS:
                units &= check.holding(common)
        return units

    def _is_countable(self, option: problems.Option) -> bool:
        """Return True if every device that the option takes is lost to other options."""
        return not option.way.admin_access and not self.candidates[option] & self.problem.shared

    def _demand(self, level: problems.Level) -> matching.Demand | None:
        units = 0
        for option in level.options:
            if not self._is_countable(option):
                return None
            units |= self.candidates[option]
        return units, min(option.count for option in level.options)

    def _later_demands(self) -> list[list[matching.Demand]]:
        """Return, for each level and for the end, the merged demands of this and all later levels."""
        later: list[list[matching.Demand]] = [[]]
        total: dict[int, int] = {}
        for demand in reversed(self._demands):
            if demand is not None:
                total[demand[0]] = total.get(demand[0], 0) + demand[1]
            later.append(list(total.items()))
        return later[::-1]


def _quiet_levels(problem: problems.Problem) -> list[bool]:
    quiet: list[bool] = []
    silent = True
    for level in reversed(problem.levels):
        silent = silent and not any(_is_loud(problem, option) for option in level.options)
        quiet.append(silent)
    return quiet[::-1]


def _is_loud(problem: problems.Problem, option: problems.Option) -> bool:
    if option.listed is not None and option.checks:
        # "All" devices that a constraint keeps apart are an error, and not just no solution.
        return True
    in_reach = -1 if option.way.admin_access else ~problem.taken
    return bool(option.errors & in_reach) or any(check.failing & in_reach for check in option.checks)
