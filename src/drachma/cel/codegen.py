"""Code generation: a plan becomes one Python function of straight-line code, compiled by Python itself.

Called by programs before their first evaluation. The function covers evaluation without errors: plain types, present
attributes, no overflow. Wherever a value is not what the code was written for it raises, and the program has the
stepwise machine evaluate the expression from the start; so the function must be right only when it returns.

Plans that are large or deep, or that use rare features, are refused: the machine runs them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drachma.cel import codegen_attributes, codegen_calls, codegen_folds, steps
from drachma.cel.codegen_writer import Atom, Costly, Surprise, Unsuitable, Writer
from drachma.cel.runtime import costs, faults, values

__all__ = ["SURPRISES", "Costly", "Unsuitable", "generate", "source"]

MAX_NODES: Final = 1000
MAX_DEPTH: Final = 40

SURPRISES: Final = (
    Surprise, faults.Fault, faults.Abort, KeyError, TypeError, AttributeError, IndexError, OverflowError,
    RecursionError,
)  # fmt: skip
"""Error of generated code that hands over to the stepwise machine."""

Function = Callable[[Any, Callable[[], str | None] | None], tuple[Any, int]]


def generate(plan: steps.Node, *, device: bool) -> Function:
    """Return the function of a plan. Raises Unsuitable. With ``device`` its input is a Device, otherwise a mapping."""
    writer, text = _write(plan, device=device)
    namespace = writer.namespace
    exec(compile(text, "<cel>", "exec", dont_inherit=True), namespace)
    function: Function = namespace["f"]
    return function


def source(plan: steps.Node, *, device: bool) -> str:
    """Return the text of the function, for tests and for the curious."""
    return _write(plan, device=device)[1]


def _write(plan: steps.Node, *, device: bool) -> tuple[Writer, str]:
    _measure(plan)
    writer = Writer()
    emitter = Emitter(writer, device=device)
    emitter.end(plan, {})
    return writer, writer.source("f")


def _measure(plan: steps.Node) -> None:
    """Refuses plans that are too large or too deep for generated code, without recursion."""
    todo: list[tuple[Any, int]] = [(plan, 1)]
    nodes = 0
    while todo:
        node, depth = todo.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Unsuitable
        todo.extend((child, depth + 1) for child in steps.children(node))


class Emitter:
    """Writes the code of nodes; ``scope`` has the local variables by their CEL names."""

    def __init__(self, writer: Writer, *, device: bool) -> None:
        self.writer = writer
        self.device = device
        self.loops = 0

    def end(self, node: steps.Node, scope: codegen_attributes.Scope, *, boolean: bool = False) -> None:
        """Code that returns the value of a node, which may have to be a bool; decided paths return at once."""
        writer = self.writer
        if isinstance(node, steps.Logic):
            *terms, last = _terms(node)
            for term in terms:
                self.leave(term, scope, decided_by=node.decided_by)
            self.end(last, scope, boolean=True)
            return
        if isinstance(node, steps.Attribute) and isinstance(node.base, steps.Branch) and not node.qualifiers:
            condition = self.emit(node.base.condition, scope)
            before = writer.counted
            with writer.path(f"if {condition.code} is True:"):
                self.end_resolved(node.base.truthy, scope, boolean=boolean)
            writer.restore(has_counter=before)
            if condition.sure is not bool:
                with writer.path(f"if {condition.code} is not False:"):
                    writer.line("raise Surprise")
            self.end_resolved(node.base.falsy, scope, boolean=boolean)
            return
        if isinstance(node, steps.Fold) and codegen_folds.is_binding(node):
            self.end(node.result, codegen_folds.bind(self, node, scope), boolean=boolean)
            return
        self._give(self.emit(node, scope), boolean=boolean)

    def leave(self, term: steps.Node, scope: codegen_attributes.Scope, *, decided_by: bool) -> None:
        """Code that returns if a term of a logical operator decides it, and otherwise goes on."""
        writer = self.writer
        comparison = codegen_calls.text_equality(term) if not decided_by else None
        if comparison is not None:
            # Equal texts have the same length, so going on has a cost that is known in advance.
            node, text = comparison
            value = self.emit(node, scope)
            codegen_calls.require(writer, value, str)
            before = writer.counted
            with writer.path(f"if {value.code} != {text!r}:"):
                writer.give_extra("False", codegen_calls.text_cost(value.code, text))
            writer.restore(has_counter=before)
            writer.count(costs.tenth(len(text)))
            return
        value = self.emit(term, scope)
        if value.sure is bool:
            with writer.path(f"if {'' if decided_by else 'not '}{value.code}:"):
                writer.give(repr(decided_by))
            return
        with writer.path(f"if {value.code} is {decided_by}:"):
            writer.give(repr(decided_by))
        with writer.path(f"if {value.code} is not {not decided_by}:"):
            writer.line("raise Surprise")

    def _give(self, value: Atom, *, boolean: bool) -> None:
        if boolean and value.sure is not bool:
            self.writer.line(f"if {value.code}.__class__ is not bool: raise Surprise")
        self.writer.give(value.code)

    def end_resolved(self, attribute: steps.Attribute, scope: codegen_attributes.Scope, *, boolean: bool) -> None:
        """Like end(), for a branch of a conditional, whose read is not charged."""
        if isinstance(attribute.base, steps.Operand) and not attribute.qualifiers:
            self.end(attribute.base.node, scope, boolean=boolean)
            return
        if isinstance(attribute.base, steps.Branch) and not attribute.qualifiers:
            self.end(attribute, scope, boolean=boolean)
            return
        self._give(codegen_attributes.resolve(self, attribute, scope), boolean=boolean)

    def emit(self, node: steps.Node, scope: codegen_attributes.Scope) -> Atom:
        """Code that computes a node; the atom is its value."""
        return _EMITTERS[node.__class__](self, node, scope)

    def constant(self, node: steps.Constant, scope: codegen_attributes.Scope) -> Atom:
        return self.writer.constant(node.value)

    def logic(self, node: steps.Logic, scope: codegen_attributes.Scope) -> Atom:
        writer = self.writer
        left = self.emit(node.left, scope)
        writer.need_counter()
        out = writer.let(left.code, bool)
        if left.sure is bool:
            head = f"if {'not ' if node.decided_by else ''}{out.code}:"
        else:
            head = f"if {out.code} is not {node.decided_by}:"
        with writer.block(head):
            if left.sure is not bool:
                writer.line(f"if {out.code} is not {not node.decided_by}: raise Surprise")
            right = self.emit(node.right, scope)
            writer.line(f"{out.code} = {right.code}")
            if right.sure is not bool:
                writer.line(f"if {out.code}.__class__ is not bool: raise Surprise")
        return out

    def membership(self, node: steps.Membership, scope: codegen_attributes.Scope) -> Atom:
        writer = self.writer
        value = self.emit(node.arg, scope)
        members, slow = writer.use(node.members), writer.use(_is_member)
        if value.sure is str or value.sure is int:
            return writer.let(f"{value.code} in {members}", bool)
        kind = writer.let(f"{value.code}.__class__")
        test = f"{kind.code} is str or {kind.code} is int"
        return writer.let(f"{value.code} in {members} if {test} else {slow}({value.code}, {members})", bool)

    def fallback(self, node: steps.Fallback, scope: codegen_attributes.Scope) -> Atom:
        writer = self.writer
        if node.unwrap and isinstance(node.left, steps.Attribute):
            raw = codegen_attributes.emit_raw(self, node.left, scope)
            if raw is not None:
                return self._instead(raw, "MISSING", node.right, scope)
        left = self.emit(node.left, scope)
        writer.line(f"if {left.code}.__class__ is not Optional: raise Surprise")
        if not node.unwrap:
            return self._instead(writer.let(left.code, values.Optional), "NONE", node.right, scope)
        out = writer.let(f"MISSING if {left.code} is NONE else {left.code}.value")
        return self._instead(out, "MISSING", node.right, scope)

    def _instead(self, out: Atom, sentinel: str, node: steps.Node, scope: codegen_attributes.Scope) -> Atom:
        self.writer.need_counter()
        with self.writer.block(f"if {out.code} is {sentinel}:"):
            self.writer.line(f"{out.code} = {self.emit(node, scope).code}")
        return Atom(out.code)

    def make_list(self, node: steps.MakeList, scope: codegen_attributes.Scope) -> Atom:
        if node.optional:
            raise Unsuitable
        elements = [self.emit(element, scope).code for element in node.elements]
        self.writer.count(costs.LIST)
        return self.writer.let(f"[{', '.join(elements)}]", list)

    def make_map(self, node: steps.MakeMap, scope: codegen_attributes.Scope) -> Atom:
        pairs = []
        for key, value, optional in node.entries:
            if optional:
                raise Unsuitable
            encoded = self.emit(key, scope)
            code = encoded.code if encoded.sure is str else f"{self.writer.use(values.encode_key)}({encoded.code})"
            pairs.append(f"{self.writer.let(code).code}: {self.emit(value, scope).code}")
        self.writer.count(costs.MAP)
        return self.writer.let(f"{{{', '.join(pairs)}}}", dict)

    def make_message(self, node: steps.MakeMessage, scope: codegen_attributes.Scope) -> Atom:
        # None can be made; how it fails is for the machine to say.
        raise Unsuitable


def _terms(node: steps.Logic) -> list[steps.Node]:
    """Return the operands of a chain of the same operator, from left to right."""
    todo: list[steps.Node] = [node]
    terms: list[steps.Node] = []
    while todo:
        term = todo.pop()
        if isinstance(term, steps.Logic) and term.decided_by is node.decided_by:
            todo += (term.right, term.left)
        else:
            terms.append(term)
    return terms


def _is_member(value: Any, members: frozenset[Any]) -> bool:
    return values.encode_key(value) in members


_EMITTERS: Final[dict[type, Callable[..., Atom]]] = {
    steps.Attribute: codegen_attributes.emit,
    steps.Call: codegen_calls.emit,
    steps.Constant: Emitter.constant,
    steps.Fallback: Emitter.fallback,
    steps.Fold: codegen_folds.emit,
    steps.Logic: Emitter.logic,
    steps.MakeList: Emitter.make_list,
    steps.MakeMap: Emitter.make_map,
    steps.MakeMessage: Emitter.make_message,
    steps.Membership: Emitter.membership,
    steps.Presence: codegen_attributes.emit_presence,
}
