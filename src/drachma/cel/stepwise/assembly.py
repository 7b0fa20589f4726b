"""Assembly: a plan laid out as one sequence of instructions, with jumps where evaluation may skip or repeat.

Called by programs when they first need the machine. Works with a list of pieces yet to lay out instead of recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drachma.cel import plan, steps
from drachma.cel.runtime import costs, library
from drachma.cel.stepwise import folding, instructions, machine, selection

Label = instructions.Label

_Local = tuple[str, int, Label | None]
_Scope = dict[str, _Local]
_Piece = tuple[Callable[..., None], tuple[Any, ...]]


def assemble(root: steps.Node) -> machine.Code:
    """Return the instructions of a plan."""
    return _Assembler().assemble(root)


class _Assembler:
    """``todo`` holds pieces yet to lay out, the next one last; a piece may add more."""

    def __init__(self) -> None:
        self.code: list[machine.Instruction] = []
        self.todo: list[_Piece] = []
        self.registers = 0
        self.frames = 0

    def assemble(self, root: steps.Node) -> machine.Code:
        out = self.register()
        self.then((self.node, (root, {}, out)))
        while self.todo:
            lay, arguments = self.todo.pop()
            lay(*arguments)
        self.code.append(instructions.stop)
        return machine.Code(self.code, self.registers, self.frames, out)

    def register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def then(self, *pieces: _Piece) -> None:
        """These pieces come next, in this order."""
        self.todo.extend(reversed(pieces))

    def add(self, make: Callable[..., machine.Instruction], *arguments: Any, **options: Any) -> None:
        """Appends an instruction that is followed by the next one unless it jumps."""
        self.code.append(make(*arguments, len(self.code) + 1, **options))

    def here(self, label: Label) -> None:
        label.at = len(self.code)

    def node(self, node: steps.Node, scope: _Scope, out: int) -> None:
        _LAYOUTS[node.__class__](self, node, scope, out)

    def constant(self, node: steps.Constant, scope: _Scope, out: int) -> None:
        self.add(instructions.constant, out, node.id, node.value)

    def call(self, node: steps.Call, scope: _Scope, out: int) -> None:
        binding, done = node.binding, Label()
        registers = [self.register() for _ in node.args]
        ids = [arg.id for arg in node.args]
        pieces: list[_Piece] = []
        for arg, register in zip(node.args, registers, strict=True):
            pieces.append((self.node, (arg, scope, register)))
            if binding.evaluation is library.Evaluation.UNTIL_ERROR:
                pieces.append((self.add, (instructions.skip_error, register, out, done)))
        if binding is plan.NOT_STRICTLY_FALSE:
            pieces.append((self.add, (instructions.not_strictly_false, out, registers[0])))
        else:
            pieces.append((self.add, (instructions.call, out, registers, binding.run)))
        pieces.append((self.here, (done,)))
        pieces.append((self.add, (instructions.charge, out, node.id, ids, binding.charge)))
        self.then(*pieces)

    def logic(self, node: steps.Logic, scope: _Scope, out: int) -> None:
        left, right, done = self.register(), self.register(), Label()
        self.then(
            (self.node, (node.left, scope, left)),
            (self.add, (instructions.decide, left, out, node.decided_by, done)),
            (self.node, (node.right, scope, right)),
            (self.add, (instructions.combine, left, right, out, node.decided_by)),
            (self.here, (done,)),
            (self.add, (instructions.note, out, node.id, (node.left.id, node.right.id), 0)),
        )

    def membership(self, node: steps.Membership, scope: _Scope, out: int) -> None:
        register = self.register()
        self.then(
            (self.node, (node.arg, scope, register)),
            (self.add, (instructions.member, out, register, node.members)),
            (self.add, (instructions.note, out, node.id, (), 0)),
        )

    def fallback(self, node: steps.Fallback, scope: _Scope, out: int) -> None:
        left, right, done = self.register(), self.register(), Label()
        self.then(
            (self.node, (node.left, scope, left)),
            (self.add, (instructions.fall_back, left, out, node.unwrap, done)),
            (self.node, (node.right, scope, right)),
            (self.add, (instructions.move, right, out)),
            (self.here, (done,)),
            (self.add, (instructions.note, out, node.id, (), 0)),
        )

    def make_list(self, node: steps.MakeList, scope: _Scope, out: int) -> None:
        done = Label()
        registers = [self.register() for _ in node.elements]
        pieces: list[_Piece] = []
        for position, (element, register) in enumerate(zip(node.elements, registers, strict=True)):
            pieces.append((self.node, (element, scope, register)))
            pieces.append((self.add, (instructions.skip_error, register, out, done)))
            if position in node.optional:
                pieces.append((self.add, (instructions.check_element, register, out, done)))
        pieces.append((self.add, (instructions.make_list, out, registers, node.optional)))
        pieces.append((self.here, (done,)))
        ids = [element.id for element in node.elements]
        pieces.append((self.add, (instructions.construct, out, node.id, ids, costs.LIST)))
        self.then(*pieces)

    def make_map(self, node: steps.MakeMap, scope: _Scope, out: int) -> None:
        done = Label()
        registers: list[tuple[int, int, bool]] = []
        ids: list[int] = []
        pieces: list[_Piece] = []
        for key, value, optional in node.entries:
            mine, value_register = self.register(), self.register()
            registers.append((mine, value_register, optional))
            ids += [key.id, value.id]
            pieces.append((self.node, (key, scope, mine)))
            pieces.append((self.add, (instructions.skip_error, mine, out, done)))
            pieces.append((self.node, (value, scope, value_register)))
            pieces.append((self.add, (instructions.skip_error, value_register, out, done)))
            if optional:
                pieces.append((self.add, (instructions.check_entry, mine, value_register, out, done)))
        pieces.append((self.add, (instructions.make_map, out, registers)))
        pieces.append((self.here, (done,)))
        pieces.append((self.add, (instructions.construct, out, node.id, ids, costs.MAP)))
        self.then(*pieces)

    def make_message(self, node: steps.MakeMessage, scope: _Scope, out: int) -> None:
        done = Label()
        pieces: list[_Piece] = []
        registers: list[tuple[str, int, bool]] = []
        for name, value, optional in node.fields:
            register = self.register()
            registers.append((name, register, optional))
            pieces.append((self.node, (value, scope, register)))
            pieces.append((self.add, (instructions.skip_error, register, out, done)))
            if optional:
                pieces.append((self.add, (instructions.check_field, name, register, out, done)))
        if node.make is None:
            pieces.append((self.add, (instructions.refuse_message, out, node.type_name)))
        else:
            pieces.append((self.add, (instructions.make_message, out, node.make, registers)))
        pieces.append((self.here, (done,)))
        ids = [value.id for _, value, _ in node.fields]
        pieces.append((self.add, (instructions.construct, out, node.id, ids, costs.MESSAGE)))
        self.then(*pieces)

    def attribute(self, node: steps.Attribute, scope: _Scope, out: int) -> None:
        self.then(
            (self.resolve, (node, scope, out)),
            (self.add, (instructions.note, out, node.id, _dropped(node), _step_cost(node))),
        )

    def presence(self, node: steps.Presence, scope: _Scope, out: int) -> None:
        # A presence test is free: what the attribute costs is given back.
        cost = _step_cost(node.attribute) - costs.STEP
        self.then(
            (self.resolve, (node.attribute, scope, out)),
            (self.add, (selection.test_result, out)),
            (self.add, (instructions.note, out, node.id, _dropped(node.attribute), cost)),
        )

    def resolve(self, node: steps.Attribute, scope: _Scope, out: int) -> None:
        """Write the value of an attribute without recording it."""
        flag, end = self.register(), Label()
        self.then(
            (self.open, (node, scope, out, flag, end)),
            (self.add, (selection.wrap, out, flag)),
            (self.here, (end,)),
        )

    def open(self, node: steps.Attribute, scope: _Scope, out: int, flag: int, end: Label) -> None:
        """Write the value of an attribute before it is wrapped. The flag tells if an optional was on the way."""
        base, pieces = node.base, list[_Piece]()
        if scope and isinstance(base, steps.Variable) and base.name.startswith("."):
            self.open_muted(node, out, flag, end)
            return
        if isinstance(base, steps.Branch):
            condition, otherwise, joined = self.register(), Label(), Label()
            pieces += (
                (self.node, (base.condition, scope, condition)),
                (self.add, (selection.choose, condition, out, otherwise, end)),
                (self.open, (base.truthy, scope, out, flag, end)),
                (self.goto, (joined,)),
                (self.here, (otherwise,)),
                (self.open, (base.falsy, scope, out, flag, end)),
                (self.here, (joined,)),
            )
        else:
            if isinstance(base, steps.Variable):
                pieces.append((self.variable, (base.name, scope, out)))
            else:
                pieces.append((self.node, (base.node, scope, out)))
            pieces.append((self.add, (selection.open_base, out, flag, end)))
        pieces += [(self.qualifier, (qualifier, scope, out, flag, end)) for qualifier in node.qualifiers]
        self.then(*pieces)

    def open_muted(self, node: steps.Attribute, out: int, flag: int, end: Label) -> None:
        """Past a local variable of the same name upstream looks at the input only, and counts nothing."""
        point, broken, done = self.register(), Label(), Label()
        self.then(
            (self.add, (selection.mute, point)),
            (self.open, (node, {}, out, flag, broken)),
            (self.add, (selection.unmute, point)),
            (self.goto, (done,)),
            (self.here, (broken,)),
            (self.add, (selection.unmute, point)),
            (self.goto, (end,)),
            (self.here, (done,)),
        )

    def goto(self, label: Label) -> None:
        self.code.append(instructions.jump(label))

    def qualifier(self, qualifier: steps.Qualifier, scope: _Scope, out: int, flag: int, end: Label) -> None:
        if qualifier.source is steps.Source.CONSTANT:
            self.add(_qualify(qualifier, None), out, flag, end)
            return
        key = self.register()
        lay = self.resolve if qualifier.source is steps.Source.ATTRIBUTE else self.node
        self.then(
            (lay, (qualifier.key, scope, key)),
            (self.add, (_qualify(qualifier, key), out, flag, end)),
        )

    def variable(self, name: str, scope: _Scope, out: int) -> None:
        register = scope.get(name)
        if register is None:
            self.add(selection.variable, out, name.removeprefix("."))
        elif register[0] == "accu":
            self.add(folding.accumulator, out, register[1], register[2])
        else:
            self.add(folding.local, out, register[1], register[0] == "second")

    def fold(self, node: steps.Fold, scope: _Scope, out: int) -> None:
        frame = self.frames
        self.frames += 1
        start, main, loop, result, end = Label(), Label(), Label(), Label(), Label()
        accu, iterated, condition, step, final = (self.register() for _ in range(5))
        pairs = node.iter_var2 is not None
        after: _Scope = {**scope, node.accu_var: ("accu", frame, start)}
        inside: _Scope = {**scope, node.iter_var: ("first", frame, None)}
        if node.iter_var2 is not None:
            inside[node.iter_var2] = ("second", frame, None)
        inside[node.accu_var] = ("accu", frame, start)
        self.then(
            (self.goto, (main,)),
            (self.here, (start,)),
            (self.node, (node.accu, scope, accu)),
            (self.code.append, (folding.initialize(accu, frame),)),
            (self.here, (main,)),
            (self.node, (node.range, scope, iterated)),
            (self.begin, (iterated, out, frame, end, pairs)),
            (self.here, (loop,)),
            (self.advance, (frame, result, pairs)),
            (self.node, (node.condition, inside, condition)),
            (self.add, (folding.proceed, condition, result)),
            (self.node, (node.step, inside, step)),
            (self.code.append, (folding.accumulate(step, out, frame, loop, end),)),
            (self.here, (result,)),
            (self.node, (node.result, after, final)),
            (self.add, (folding.finish, final, out, frame)),
            (self.here, (end,)),
            (self.add, (instructions.note, out, node.id, (node.range.id,), 0)),
        )

    def begin(self, iterated: int, out: int, frame: int, end: Label, pairs: bool) -> None:  # noqa: FBT001
        self.add(folding.begin, iterated, out, frame, end, pairs=pairs)

    def advance(self, frame: int, result: Label, pairs: bool) -> None:  # noqa: FBT001
        self.add(folding.advance, frame, result, pairs=pairs)


_LAYOUTS: Final[dict[type, Callable[..., None]]] = {
    steps.Attribute: _Assembler.attribute,
    steps.Call: _Assembler.call,
    steps.Constant: _Assembler.constant,
    steps.Fallback: _Assembler.fallback,
    steps.Fold: _Assembler.fold,
    steps.Logic: _Assembler.logic,
    steps.MakeList: _Assembler.make_list,
    steps.MakeMap: _Assembler.make_map,
    steps.MakeMessage: _Assembler.make_message,
    steps.Membership: _Assembler.membership,
    steps.Presence: _Assembler.presence,
}


def _qualify(qualifier: steps.Qualifier, key: int | None) -> Callable[..., machine.Instruction]:
    computed = qualifier.source is steps.Source.COMPUTED

    def make(out: int, flag: int, end: Label, following: int) -> machine.Instruction:
        return selection.qualify(out, flag, qualifier, key, end, following, computed=computed)

    return make


def _step_cost(node: steps.Attribute) -> int:
    return 0 if isinstance(node.base, steps.Branch) else costs.STEP


def _dropped(node: steps.Attribute) -> tuple[int, ...]:
    """Return the ids whose values end with this attribute."""
    if not isinstance(node.base, steps.Branch):
        return (node.id,)
    branch = node.base
    if node.qualifiers:
        return (node.id, branch.condition.id)
    return (branch.falsy.id, branch.truthy.id, branch.condition.id)
