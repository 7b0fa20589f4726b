"""The instructions of the stepwise machine: constants, calls, logic and literals.

Instructions are functions over the machine's state, made for particular registers and node ids; ``assembly`` lays them
out. An instruction that may end a sequence early is given the label to go on at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drachma.cel.runtime import costs, faults, library, spelling, values
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
    """Return True if a fold goes on: anything but false will do, an error included."""

    def run(state: machine.State) -> int:
        state.registers[out] = state.registers[register] is not False
        return following

    return run


def charge(out: int, node_id: int, arguments: Sequence[int], cost: costs.Charge, following: int) -> machine.Instruction:
    """Add the cost of a call, if all of its arguments have been evaluated."""

    def run(state: machine.State) -> int:
        ledger, value = state.ledger, state.registers[out]
        values = ledger.take(arguments)
        if values is not None:
            ledger.cost += cost if isinstance(cost, int) else cost(values, value)
        ledger.push(node_id, value)
        return following

    return run


def construct(out: int, node_id: int, arguments: Sequence[int], cost: int, following: int) -> machine.Instruction:
    """Add the cost of a list, map or message literal."""

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
        for id_ in dropped:
            ledger.drop(id_)
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
    """Return the result of a logical operator whose left side did not decide it: errors lose against a decision."""

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
        state.registers[out] = _not_optional(spelling.show(state.registers[key]), value)
        return label.at

    return run


def check_field(name: str, register: int, out: int, label: Label, following: int) -> machine.Instruction:
    """Refuses an optional field of a message whose value is not an optional."""

    def run(state: machine.State) -> int:
        value = state.registers[register]
        if value.__class__ is values.Optional:
            return following
        state.registers[out] = _not_optional(name, value)
        return label.at

    return run


def _not_optional(name: str, value: Any) -> Fault:
    return Fault(f"cannot initialize optional entry '{name}' from non-optional value {spelling.show(value)}")


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


def make_message(
    out: int, make: Callable[[dict[str, Any]], Any], fields: list[tuple[str, int, bool]], following: int
) -> machine.Instruction:
    """Makes a value of the registers of its fields; optional fields without a value are left out."""

    def run(state: machine.State) -> int:
        parts: dict[str, Any] = {}
        for name, register, optional in fields:
            value = state.registers[register]
            if not optional:
                parts[name] = value
            elif value is not values.NONE:
                parts[name] = value.value
        try:
            state.registers[out] = make(parts)
        except Fault as fault:
            state.registers[out] = fault
        return following

    return run


def refuse_message(out: int, type_name: str, following: int) -> machine.Instruction:
    """Fails: upstream's types of devices are known to its checker alone, none of their values can be made."""

    def run(state: machine.State) -> int:
        state.registers[out] = Fault(f"unknown type '{type_name}'")
        return following

    return run


def stop(state: machine.State) -> int:
    """Return the end of the code."""
    return -1
