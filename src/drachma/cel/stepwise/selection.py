"""Instructions for attributes: reading variables, choosing branches, and applying qualifiers one by one.

Made for particular registers and node ids, as all instructions are; laid out by ``assembly``.
"""

from __future__ import annotations

from typing import Any

from drachma.cel import steps
from drachma.cel.runtime import costs, faults, qualification, values
from drachma.cel.stepwise import instructions, machine

Fault = faults.Fault
Label = instructions.Label


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
    qualifier: steps.Qualifier,
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
        qualifier = fixed if key is None else registers[key]
        registers[flag] = through = registers[flag] or optional
        try:
            if qualifier.__class__ is Fault:
                raise qualifier
            if key is not None:
                qualification.check_key(qualifier)
            if through or test:
                value = qualification.select_present(base, qualifier)
            else:
                value = qualification.select(base, qualifier)
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
    """Return the answer of ``has``: an optional counts by its having a value."""

    def run(state: machine.State) -> int:
        value = state.registers[out]
        if value.__class__ is values.Optional:
            state.registers[out] = value is not values.NONE
        return following

    return run


def mute(register: int, following: int) -> machine.Instruction:
    """From here on nothing counts."""

    def run(state: machine.State) -> int:
        state.registers[register] = state.ledger.mark()
        return following

    return run


def unmute(register: int, following: int) -> machine.Instruction:
    """Count everything again."""

    def run(state: machine.State) -> int:
        state.ledger.rewind(state.registers[register])
        return following

    return run
