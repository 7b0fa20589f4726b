"""Search: the first solution of a problem in upstream's order, or the first error on the way, or proof of neither.

Upstream's order is depth first: claim by claim, request by request, subrequest by subrequest, devices by position,
and within a request only ever upwards. A search here visits the same tree in the same order and leaves out parts that
contain nothing: no solution and no error. What upstream would find first is therefore what is found first.

A search first goes straight ahead: see :mod:`drachma.allocator.straight`, or the same here where choices and shares
have to be kept track of. At a dead end it starts again, carefully: with an outlook, with twins, and with a memory of
what failed. Most searches never need that, and pay nothing for it.

States are immutable, so going back is nothing but looking at an older one.
"""

from __future__ import annotations

import enum
from typing import Final

from drachma import errors
from drachma.allocator import budget, memory, outlook, straight, symmetry
from drachma.allocator import claim as claims
from drachma.allocator import problem as problems
from drachma.allocator.memory import State

_FEW: Final = 4


class _Outcome(enum.Enum):
    SOLVED = enum.auto()
    DEEPER = enum.auto()
    FAILED = enum.auto()
    EXCEEDED = enum.auto()
    """All ways on would give a claim more devices than it can have, whichever devices they are."""


_SOLVED: Final = _Outcome.SOLVED
_DEEPER: Final = _Outcome.DEEPER
_FAILED: Final = _Outcome.FAILED
_EXCEEDED: Final = _Outcome.EXCEEDED


class _DeadEndError(Exception):
    """A search that goes straight ahead has to go back."""


class _Slot:
    """One device that an option needs, and what has not been tried for it yet."""

    __slots__ = ("claim", "held", "key", "number", "option", "position", "state", "todo")

    def __init__(self, option: problems.Option, number: int, *, todo: int, state: State, device_count: int) -> None:
        self.option = option
        self.number = number
        self.todo = todo
        self.state = state
        self.held = device_count
        """Number of devices that the claim had before."""
        self.claim = option.claim
        self.position = -1
        self.key = b""


class _Choice:
    """A level with several options, and which of them comes next."""

    __slots__ = ("all_exceeded", "claim", "current", "held", "level", "state")

    def __init__(self, level: problems.Level, *, state: State, device_count: int) -> None:
        self.level = level
        self.claim = level.claim
        self.state = state
        self.held = device_count
        self.current = -1
        self.all_exceeded = True


def search(problem: problems.Problem, budget: budget.Budget) -> straight.Solution | None:
    """Return the first solution, or None.

    Raises AllocationError for the error that upstream meets first, if it meets one before a solution; ExhaustedError
    when the budget is used up before it is known which of these it is.
    """
    if straight.applies(problem):
        solution = straight.go(problem, budget)
        if solution is not None:
            return solution
    elif not problem.draws or sum(level.options[0].count for level in problem.levels) <= _FEW:
        # Where many devices draw from counters, thinking is cheaper than trying.
        try:
            return _Search(problem, budget, prospect=None).run()
        except _DeadEndError:
            pass
    prospect = outlook.Outlook(problem)
    if prospect.hopeless:
        return None
    return _Search(problem, budget, prospect=prospect).run()


class _Search:
    def __init__(self, problem: problems.Problem, budget: budget.Budget, *, prospect: outlook.Outlook | None) -> None:
        """Without a prospect the search goes straight ahead, and raises _DeadEndError where it cannot."""
        self._problem = problem
        self._levels = problem.levels
        self._spent = budget
        self._prospect = prospect
        self._stack: list[_Slot | _Choice] = []
        self._draws = problem.draws
        self._twins: dict[int, int] = {}
        if prospect is not None:
            self._draws = prospect.scarcity.draws
            self._twins = symmetry.twins(problem, prospect.candidates, draws=self._draws, budget=budget)
            self._memory = memory.Memory(problem)

    def run(self) -> straight.Solution | None:
        outcome = self._enter(0, self._start(), claim=0, device_count=0)
        stack = self._stack
        while True:
            if outcome is _SOLVED:
                return self._solution()
            if outcome is _DEEPER:
                outcome = self._go_on(stack[-1])
                continue
            if not stack:
                return None
            finished = stack.pop()
            if self._prospect is not None and outcome is _FAILED and isinstance(finished, _Slot):
                self._memory.add(finished.key)
            if not stack:
                if outcome is _EXCEEDED and finished.claim == 0:
                    raise errors.AllocationError("allocation max size exceeded")
                return None
            above = stack[-1]
            if outcome is _EXCEEDED and finished.claim != above.claim:
                # Another device for an earlier claim may let this one get by with a smaller subrequest.
                outcome = _FAILED
            if isinstance(above, _Choice):
                above.all_exceeded = above.all_exceeded and outcome is _EXCEEDED
                outcome = self._go_on(above)
            elif outcome is _FAILED:
                self._rule_out_twins(above, above.position)
                outcome = self._go_on(above)

    def _start(self) -> State:
        problem = self._problem
        constraint_state = problem.starts[self._levels[0].claim] if self._levels else ()
        marks = (0,) * len(problem.claims) if problem.has_admin_access else ()
        return State(problem.taken, constraint_state, problem.left, problem.groups, {}, marks, problem.node_left)

    def _go_on(self, frame: _Slot | _Choice) -> _Outcome:
        return self._try_devices(frame) if isinstance(frame, _Slot) else self._try_options(frame)

    def _enter(self, depth: int, state: State, *, claim: int, device_count: int) -> _Outcome:
        """Go to a level, coming from a device or a choice of ``claim``, which has ``held`` devices."""
        current = claim
        while depth < len(self._levels):
            level = self._levels[depth]
            if level.claim != current:
                current = level.claim
                device_count = 0
                state = state._replace(chosen=self._problem.starts[current])
            if level.is_choice:
                self._stack.append(_Choice(level, state=state, device_count=device_count))
                return _DEEPER
            outcome = self._open(level.options[0], state, device_count=device_count)
            if outcome is not None:
                return _FAILED if outcome is _EXCEEDED and current != claim else outcome
            depth += 1
        return _SOLVED

    def _try_options(self, choice: _Choice) -> _Outcome:
        """Take the next subrequest that is not out of the question at once."""
        options = choice.level.options
        while True:
            choice.current += 1
            if choice.current >= len(options):
                return _EXCEEDED if choice.all_exceeded else _FAILED
            option = options[choice.current]
            outcome = self._open(option, choice.state, device_count=choice.held)
            if outcome is None:
                outcome = self._enter(option.level + 1, choice.state, claim=choice.claim, device_count=choice.held)
            if outcome is _SOLVED or outcome is _DEEPER:
                return outcome
            choice.all_exceeded = choice.all_exceeded and outcome is _EXCEEDED

    def _open(self, option: problems.Option, state: State, *, device_count: int) -> _Outcome | None:
        """Start with an option; None if it needs no devices."""
        if option.count == 0:
            return None if option.listed is None else _FAILED
        if device_count + option.count > claims.MAX_RESULTS:
            return _EXCEEDED
        if option.listed is not None:
            todo = 1 << option.listed[0]
        else:
            worth_trying = option.candidates if self._prospect is None else self._prospect.candidates[option]
            in_use = state.marks[option.claim] if option.way.admin_access else state.taken
            todo = (worth_trying | option.errors) & ~in_use
        return self._push(option, 0, todo=todo, state=state, device_count=device_count)

    def _push(self, option: problems.Option, number: int, *, todo: int, state: State, device_count: int) -> _Outcome:
        if option.listed is None and option.is_tame and todo.bit_count() < option.count - number:
            return _FAILED
        slot = _Slot(option, number, todo=todo, state=state, device_count=device_count)
        if self._prospect is not None:
            slot.key = self._memory.key(option, number, todo=todo, state=state, device_count=device_count)
            if slot.key in self._memory:
                return _FAILED
        self._stack.append(slot)
        return _DEEPER

    def _try_devices(self, slot: _Slot) -> _Outcome:
        """Take the next device that is not out of the question at once."""
        option = slot.option
        prospect = self._prospect
        more = option.count - slot.number - 1
        while slot.todo:
            self._spent.step()
            low = slot.todo & -slot.todo
            slot.todo ^= low
            slot.position = position = low.bit_length() - 1
            if option.errors & low:
                raise self._problem.failure(option, position)
            state = self._admit(option, position, slot.state)
            if state is not None and (
                prospect is None
                or not prospect.quiet[option.level]
                or (
                    prospect.scarcity.affordable(option, state.left, more=more)
                    and prospect.promising(
                        option, slot.todo, more=more, in_use=state.taken, constraint_state=state.chosen
                    )
                )
            ):
                if more:
                    todo = slot.todo if option.listed is None else 1 << option.listed[slot.number + 1]
                    outcome = self._push(option, slot.number + 1, todo=todo, state=state, device_count=slot.held)
                else:
                    device_count = slot.held + option.count
                    outcome = self._enter(option.level + 1, state, claim=slot.claim, device_count=device_count)
                if outcome is not _FAILED:
                    return outcome
                if prospect is None:
                    raise _DeadEndError
            self._rule_out_twins(slot, position)
        if prospect is None:
            raise _DeadEndError
        return _FAILED

    def _admit(self, option: problems.Option, position: int, state: State) -> State | None:
        """Return the state with one more device, or None. Raises AllocationError where upstream does."""
        problem = self._problem
        in_use, constraint_state, available, groups, shares, marks, node_left = state
        bit = 1 << position
        is_shared = problem.shared & bit
        must = option.listed is not None
        if must:
            excluded = marks[option.claim] if option.way.admin_access else in_use
            if excluded & bit or not option.candidates & bit:
                return None
        elif is_shared and not self._has_room(option, position, shares):
            return None
        if node_left:
            needs = problem.node_needs(option, position)
            node_left = tuple([remainder - need for remainder, need in zip(node_left, needs, strict=True)])
            if any(remainder < 0 < need for remainder, need in zip(node_left, needs, strict=True)):
                return None
        if not (is_shared and position in shares):
            if problem.bonds and position in problem.bonds:
                bound = list(groups)
                for place, bits in problem.bonds[position]:
                    bound[place] &= bits
                    if not bound[place]:
                        return None
                groups = tuple(bound)
            draws = self._draws.get(position)
            if draws:
                amounts_left = list(available)
                for counter, amount in draws:
                    amounts_left[counter] -= amount
                    if amounts_left[counter] < 0:
                        return None
                available = tuple(amounts_left)
        if option.checks:
            extended = problem.extend(option, position, constraint_state)
            if extended is None:
                if must:
                    label = problem.claims[option.claim].label
                    raise errors.AllocationError(
                        f"claim {label}, request {option.way.name}: cannot add device "
                        f"{problem.view.device_id(position)} because a claim constraint would not be satisfied"
                    )
                return None
            constraint_state = extended
        if must and (option.short & bit or (is_shared and not self._has_room(option, position, shares))):
            return None
        if is_shared:
            amounts, _ = problem.room(option, position)
            before = shares.get(position)
            total = amounts if before is None else tuple(map(sum, zip(before, amounts, strict=True)))
            shares = {**shares, position: total}
        else:
            in_use |= bit
            if marks:
                marks = (*marks[: option.claim], marks[option.claim] | bit, *marks[option.claim + 1 :])
        return State(in_use, constraint_state, available, groups, shares, marks, node_left)

    def _has_room(self, option: problems.Option, position: int, shares: dict[int, tuple[int, ...]]) -> bool:
        shared_amounts = shares.get(position)
        if shared_amounts is None:
            # What others consumed was looked at before the search.
            return True
        amounts, available = self._problem.room(option, position)
        return all(
            amount + shared <= remainder
            for amount, shared, remainder in zip(amounts, shared_amounts, available, strict=True)
        )

    def _rule_out_twins(self, slot: _Slot, position: int) -> None:
        """Do not try what cannot be told apart from a device that led nowhere."""
        twins = self._twins.get(position, 0) & slot.todo
        if not twins:
            return
        shares = slot.state.shares
        if shares and self._problem.shared >> position & 1:
            # Twins are alike only as long as the same was taken of them.
            same = shares.get(position)
            for sharer in shares:
                if shares[sharer] != same:
                    twins &= ~(1 << sharer)
            if same is not None:
                twins &= sum(1 << sharer for sharer in shares)
        slot.todo &= ~twins

    def _solution(self) -> straight.Solution:
        options = [level.options[0] for level in self._levels]
        picks: list[straight.Pick] = []
        for frame in self._stack:
            if isinstance(frame, _Choice):
                option = frame.level.options[frame.current]
                options[option.level] = option
            else:
                picks.append(straight.Pick(frame.option, frame.position))
        return straight.Solution(tuple(options), tuple(picks))
