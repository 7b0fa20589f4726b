"""Instructions for folds: their accumulator, their variables, and the loop itself.

Made for particular registers and frames; laid out by ``assembly``. The initial value of an accumulator is computed when
it is first read, by a piece of code that returns to the reader.
"""

from __future__ import annotations

from typing import Any

from drachma.cel.runtime import faults, kinds, values
from drachma.cel.stepwise import instructions, machine

Fault = faults.Fault
Label = instructions.Label


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
    """Return the result of a fold, which grows no more."""

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
