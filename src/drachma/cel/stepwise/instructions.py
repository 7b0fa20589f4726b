"""The instructions of the stepwise machine: functions over its state, made for particular registers and node ids.

Called by ``assembly`` only. An instruction that may end a sequence early is given the label to go on at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drachma.cel.runtime import costs, faults, kinds, library, qualification, spelling, values
from drachma.cel.stepwise import machine

Fault = faults.Fault


class Label:
    """A position in the code, known once assembly has come to it."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = -1


def constant(out: int, node_id: int, value: Any, following: int) -> machine.Instruction:
    """Puts a constant into a register."""

    def run(state: machine.State) -> int:
        state.registers[out] = value
        state.ledger.push(node_id, value)
        return following

    return run


def jump(label: Label) -> machine.Instruction:
    """Goes on somewhere else."""
    return lambda state: label.at


def skip_error(register: int, out: int, label: Label, following: int) -> machine.Instruction:
    """After an error, hands it on and leaves the sequence."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        if value.__class__ is Fault:
            state.registers[out] = value
            return label.at
        return following

    return run


def call(
    out: int, registers: Sequence[int], implementation: library.Implementation, following: int
) -> machine.Instruction:
    """Calls a function, unless an argument is an error, which is then the result."""

    def run(state: machine.State) -> int:
        arguments = [state.registers[register] for register in registers]
        for argument in arguments:
            if argument.__class__ is Fault:
                state.registers[out] = argument
                return following
        try:
            state.registers[out] = implementation(*arguments)
        except Fault as fault:
            state.registers[out] = fault
        return following

    return run


def not_strictly_false(out: int, register: int, following: int) -> machine.Instruction:
    """Whether a fold goes on: anything but false will do, an error included."""

    def run(state: machine.State) -> int:
        state.registers[out] = state.registers[register] is not False
        return following

    return run


def charge(out: int, node_id: int, arguments: Sequence[int], cost: costs.Charge, following: int) -> machine.Instruction:
    """Adds the cost of a call, if all of its arguments have been evaluated."""

    def run(state: machine.State) -> int:
        ledger, value = state.ledger, state.registers[out]
        found = ledger.take(arguments)
        if found is not None:
            ledger.cost += cost if isinstance(cost, int) else cost(found, value)
        ledger.push(node_id, value)
        return following

    return run


def construct(out: int, node_id: int, arguments: Sequence[int], cost: int, following: int) -> machine.Instruction:
    """Adds the cost of a list or map literal."""

    def run(state: machine.State) -> int:
        ledger = state.ledger
        ledger.take(arguments)
        ledger.cost += cost
        ledger.push(node_id, state.registers[out])
        return following

    return run


def note(out: int, node_id: int, dropped: Sequence[int], cost: int, following: int) -> machine.Instruction:
    """Notes the value of a step after forgetting those of others."""

    def run(state: machine.State) -> int:
        ledger = state.ledger
        for other in dropped:
            ledger.drop(other)
        ledger.cost += cost
        ledger.push(node_id, state.registers[out])
        return following

    return run


def decide(register: int, out: int, decided_by: bool, label: Label, following: int) -> machine.Instruction:  # noqa: FBT001
    """Leaves a logical operator where its left side decides it."""

    def run(state: machine.State) -> int:
        if state.registers[register] is decided_by:
            state.registers[out] = decided_by
            return label.at
        return following

    return run


def combine(left: int, right: int, out: int, decided_by: bool, following: int) -> machine.Instruction:  # noqa: FBT001
    """The result of a logical operator whose left side did not decide it: errors lose against a decision."""

    def run(state: machine.State) -> int:
        registers = state.registers
        if registers[right] is decided_by:
            registers[out] = decided_by
            return following
        for register in (left, right):
            value = registers[register]
            if value.__class__ is not bool:
                registers[out] = value if value.__class__ is Fault else faults.no_such_overload()
                return following
        registers[out] = not decided_by
        return following

    return run


def member(out: int, register: int, members: frozenset[Any], following: int) -> machine.Instruction:
    """Looks a value up among constants."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        state.registers[out] = value if value.__class__ is Fault else values.encode_key(value) in members
        return following

    return run


def fall_back(left: int, out: int, unwrap: bool, label: Label, following: int) -> machine.Instruction:  # noqa: FBT001
    """Takes the left side of ``or`` or ``orValue`` where it has a value."""

    def run(state: machine.State) -> int:
        value = state.registers[left]
        if value is values.NONE:
            return following
        if value.__class__ is values.Optional:
            state.registers[out] = value.value if unwrap else value
        elif value.__class__ is Fault:
            state.registers[out] = value
        else:
            state.registers[out] = faults.no_such_overload()
        return label.at

    return run


def move(source: int, out: int, following: int) -> machine.Instruction:
    """Copies a register."""

    def run(state: machine.State) -> int:
        state.registers[out] = state.registers[source]
        return following

    return run


def make_list(out: int, registers: Sequence[int], optional: frozenset[int], following: int) -> machine.Instruction:
    """Builds a list; optional elements without a value are left out."""

    def run(state: machine.State) -> int:
        elements = []
        for position, register in enumerate(registers):
            value = state.registers[register]
            if position in optional:
                if value is values.NONE:
                    continue
                value = value.value
            elements.append(value)
        state.registers[out] = elements
        return following

    return run


def check_element(register: int, out: int, label: Label, following: int) -> machine.Instruction:
    """Refuses an optional element that is not an optional."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        if value.__class__ is values.Optional:
            return following
        text = spelling.show(value)
        state.registers[out] = Fault(f"cannot initialize optional list element from non-optional value {text}")
        return label.at

    return run


def check_entry(key: int, register: int, out: int, label: Label, following: int) -> machine.Instruction:
    """Refuses an optional entry whose value is not an optional."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        if value.__class__ is values.Optional:
            return following
        name, text = spelling.show(state.registers[key]), spelling.show(value)
        state.registers[out] = Fault(f"cannot initialize optional entry '{name}' from non-optional value {text}")
        return label.at

    return run


def make_map(out: int, registers: Sequence[tuple[int, int, bool]], following: int) -> machine.Instruction:
    """Builds a map; an optional entry without a value removes what was under its key."""

    def run(state: machine.State) -> int:
        entries: dict[Any, Any] = {}
        for key, register, optional in registers:
            encoded = values.encode_key(state.registers[key])
            value = state.registers[register]
            if optional:
                if value is values.NONE:
                    entries.pop(encoded, None)
                    continue
                value = value.value
            entries[encoded] = value
        state.registers[out] = entries
        return following

    return run


def variable(out: int, name: str, following: int) -> machine.Instruction:
    """Reads an input variable."""

    def run(state: machine.State) -> int:
        value = state.variables.get(name, values.MISSING)
        if value is values.MISSING:
            value = Fault(f"no such attribute(s): {name}")
        state.registers[out] = value
        return following

    return run


def open_base(out: int, flag: int, label: Label, following: int) -> machine.Instruction:
    """Starts on the qualifiers of a value: an optional is opened, and an error or an empty one ends the attribute."""

    def run(state: machine.State) -> int:
        registers = state.registers
        value = registers[out]
        registers[flag] = False
        if value.__class__ is Fault or value is values.NONE:
            return label.at
        if value.__class__ is values.Optional:
            registers[flag] = True
            registers[out] = value.value
        return following

    return run


def choose(condition: int, out: int, otherwise: Label, label: Label, following: int) -> machine.Instruction:
    """Takes one of the branches of a conditional."""

    def run(state: machine.State) -> int:
        value = state.registers[condition]
        if value is True:
            return following
        if value is False:
            return otherwise.at
        state.registers[out] = value if value.__class__ is Fault else faults.no_such_overload()
        return label.at

    return run


def qualify(
    out: int,
    flag: int,
    qualifier: Any,
    key: int | None,
    label: Label,
    following: int,
    *,
    computed: bool,
) -> machine.Instruction:
    """Applies one qualifier; ``key`` is the register of a key that is not constant."""
    node_id, fixed, optional, test = qualifier.id, qualifier.key, qualifier.optional, qualifier.test

    def found(state: machine.State, value: Any) -> None:
        ledger = state.ledger
        if computed:
            ledger.drop(node_id)
        ledger.cost += costs.STEP
        ledger.push(node_id, value)

    def run(state: machine.State) -> int:
        registers = state.registers
        base = registers[out]
        chosen = fixed if key is None else registers[key]
        registers[flag] = through = registers[flag] or optional
        try:
            if chosen.__class__ is Fault:
                raise chosen
            if key is not None:
                qualification.check_key(chosen)
            if through or test:
                value = qualification.select_present(base, chosen)
            else:
                value = qualification.select(base, chosen)
        except Fault as fault:
            registers[out] = fault
            if not through:
                found(state, fault)
            return label.at
        if test and not through:
            value = value is not values.MISSING
        elif value is values.MISSING:
            registers[out] = values.NONE
            return label.at
        registers[out] = value
        found(state, value)
        return following

    return run


def wrap(out: int, flag: int, following: int) -> machine.Instruction:
    """Ends an attribute: what was reached through an optional is one."""

    def run(state: machine.State) -> int:
        if state.registers[flag]:
            state.registers[out] = values.Optional(state.registers[out])
        return following

    return run


def test_result(out: int, following: int) -> machine.Instruction:
    """The answer of ``has``: an optional counts by its having a value."""

    def run(state: machine.State) -> int:
        value = state.registers[out]
        if value.__class__ is values.Optional:
            state.registers[out] = value is not values.NONE
        return following

    return run


def accumulator(out: int, frame: int, start: Label, following: int) -> machine.Instruction:
    """Reads an accumulator; the first time, its initial value is computed and the instruction runs again."""
    here = following - 1

    def run(state: machine.State) -> int:
        current = state.frames[frame]
        if not current.initialized:
            current.initialized = True
            state.returns.append(here)
            return start.at
        state.registers[out] = current.accu
        return following

    return run


def initialize(register: int, frame: int) -> machine.Instruction:
    """Stores the initial value of an accumulator and returns; empty lists and maps become growing ones."""

    def run(state: machine.State) -> int:
        current = state.frames[frame]
        value: Any = state.registers[register]
        if value.__class__ in kinds.ITERABLE and not value:
            current.mutable = True
            value = values.GrowingMap() if value.__class__ in kinds.MAPS else values.Growing()
        current.accu = value
        return state.returns.pop()

    return run


def local(out: int, frame: int, second: bool, following: int) -> machine.Instruction:  # noqa: FBT001
    """Reads a variable of a fold."""

    def run(state: machine.State) -> int:
        current = state.frames[frame]
        state.registers[out] = current.second if second else current.first
        return following

    return run


def begin(register: int, out: int, frame: int, label: Label, following: int, *, pairs: bool) -> machine.Instruction:
    """Starts a fold over the range in a register."""

    def run(state: machine.State) -> int:
        iterated = state.registers[register]
        kind = iterated.__class__
        if kind is Fault:
            state.registers[out] = iterated
            return label.at
        current = state.frames[frame] = machine.Frame()
        if kind in kinds.LISTS:
            # A growing list may grow while it is walked; what is added then is not part of the walk.
            current.entries = enumerate(list(iterated) if kind is values.Growing else iterated)
        elif kind in kinds.MAPS:
            entries = zip(values.keys(iterated), list(iterated.values()), strict=True)
            current.entries = iter(entries if pairs else [(None, key) for key, _ in entries])
        else:
            name = kinds.go_name(iterated)
            message = (
                f"unsupported comprehension range type: {name}" if pairs else f"got '{name}', expected iterable type"
            )
            state.registers[out] = Fault(message)
            return label.at
        return following

    return run


def advance(frame: int, finish: Label, following: int, *, pairs: bool) -> machine.Instruction:
    """Takes the next element of a range, or goes on to the result."""

    def run(state: machine.State) -> int:
        current = state.frames[frame]
        entry = next(current.entries, None)
        if entry is None:
            return finish.at
        if pairs:
            current.first, current.second = entry
        else:
            current.first = entry[1]
        return following

    return run


def proceed(register: int, finish: Label, following: int) -> machine.Instruction:
    """Leaves a fold whose condition is false."""
    return lambda state: finish.at if state.registers[register] is False else following


def accumulate(register: int, out: int, frame: int, loop: Label, label: Label) -> machine.Instruction:
    """Ends an iteration; an interrupted fold is an error."""

    def run(state: machine.State) -> int:
        current = state.frames[frame]
        current.accu = state.registers[register]
        current.initialized = True
        if state.is_interrupted():
            state.registers[out] = Fault(faults.INTERRUPTED)
            return label.at
        return loop.at

    return run


def finish(register: int, out: int, frame: int, following: int) -> machine.Instruction:
    """The result of a fold, which grows no more."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        if state.frames[frame].mutable:
            if value.__class__ is values.Growing:
                value = list(value)
            elif value.__class__ is values.GrowingMap:
                value = dict(value)
        state.registers[out] = value
        return following

    return run


def mute(register: int, following: int) -> machine.Instruction:
    """From here on nothing counts."""

    def run(state: machine.State) -> int:
        state.registers[register] = state.ledger.mark()
        return following

    return run


def unmute(register: int, following: int) -> machine.Instruction:
    """Everything counts again."""

    def run(state: machine.State) -> int:
        state.ledger.rewind(state.registers[register])
        return following

    return run


def stop(state: machine.State) -> int:
    """The end of the code."""
    return -1
