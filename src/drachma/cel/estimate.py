"""Static cost: the least and most that evaluating a checked expression can cost, equal to upstream's estimate.

Called when an expression is compiled; the API server refuses expressions whose most is above the limit. Sizes flow
from literals, from the bounds that the environment declares for parts of its variables (tracked as paths such as
``device``, ``attributes``, ``@values``), and from the results of calls. Walks the tree with a stack of its own, in
upstream's order.
"""

from __future__ import annotations

from collections.abc import Callable

from drachma.cel import ast, callcost, calls, checker, costs, environment, macros, sizes, types
from drachma.cel.calls import Entries, Operand
from drachma.cel.costs import NOTHING, ONE, UNKNOWN, ZERO, Range
from drachma.cel.types import Kind

CostRange = Range

_SCALARS = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})
_ACCUMULATORS = frozenset({macros.ACCUMULATOR, macros.OLD_ACCUMULATOR})


def estimate(checked: checker.Checked, env: environment.Environment) -> CostRange:
    """Return the range of the cost of evaluating an expression that was checked in the environment."""
    return _Walk(checked, env).run()


class _Variable:
    """A name bound by a comprehension: the path to its values, their size, and the sizes of what is in them."""

    __slots__ = ("entries", "path", "size")

    def __init__(self, path: sizes.Path, size: Range | None, entries: Entries | None) -> None:
        self.path = path
        self.size = size
        self.entries = entries


class _Walk:
    """One estimate. ``todo`` holds steps yet to take, the next one last; ``costs`` what is known so far, by node."""

    def __init__(self, checked: checker.Checked, env: environment.Environment) -> None:
        self.root = checked.root
        self.types = checked.types
        self.references = checked.references
        self.bounds = env.bounds
        self.costs: dict[int, Range] = {}
        self.sizes: dict[int, Range] = {}
        self.entry_sizes: dict[int, Entries] = {}
        self.paths: dict[int, sizes.Path] = {}
        self.scopes: dict[str, list[_Variable]] = {}
        self.operands: dict[int, list[Operand]] = {}
        self.todo: list[tuple[Callable[[ast.Node, int], None], ast.Node, int]] = []

    def run(self) -> Range:
        self.visit(self.root)
        todo = self.todo
        while todo:
            step, node, stage = todo.pop()
            step(node, stage)
        return self.costs[self.root.id]

    def visit(self, node: ast.Node) -> None:
        """Estimate the node before any other step; leaves are estimated at once."""
        cls = type(node)
        if cls is ast.Literal:
            self.costs[node.id] = ZERO
        elif cls is ast.Ident:
            self.paths[node.id] = self.path(node)
            self.costs[node.id] = ONE
        else:
            self.todo.append((_VISITS[cls].__get__(self), node, 0))

    def visit_later(self, node: ast.Node) -> None:
        """Estimate the node after the steps that are added next."""
        self.todo.append((lambda later, _stage: self.visit(later), node, 0))

    # Sizes

    def bound(self, path: sizes.Path) -> Range | None:
        most = sizes.find(self.bounds, path)
        return None if most is None else Range(0, most)

    def variable(self, node: ast.Node) -> _Variable | None:
        if type(node) is not ast.Ident:
            return None
        bound = self.scopes.get(node.name)
        return bound[-1] if bound else None

    def path(self, node: ast.Node) -> sizes.Path:
        if type(node) is ast.Ident:
            variable = self.variable(node)
            if variable is not None:
                return variable.path
            if node.id not in self.paths:
                return sizes.Path([node.name], 1)
        return self.paths.get(node.id, sizes.NO_PATH)

    def size(self, node: ast.Node) -> Range | None:
        """Return the size of a value, None if nothing is known of it."""
        size = self.sizes.get(node.id)
        if size is not None:
            return size
        if type(node) is ast.Literal:
            return _literal_size(node)
        if type(node) is ast.ListLiteral:
            return costs.fixed(len(node.elements))
        if type(node) is ast.MapLiteral:
            return costs.fixed(len(node.entries))
        path = self.path(node)
        if path.length and path.memory[0] in self.bounds:
            size = self.bound(path)
            if size is not None:
                self.sizes[node.id] = size
                return size
        if _is_scalar(self.types[node.id]):
            return ONE
        variable = self.variable(node)
        return None if variable is None else variable.size

    def size_or_unknown(self, node: ast.Node) -> Range:
        size = self.size(node)
        return UNKNOWN if size is None else size

    def entries(self, node: ast.Node) -> Entries | None:
        sizes = self.entry_sizes.get(node.id)
        if sizes is None:
            variable = self.variable(node)
            if variable is not None:
                sizes = variable.entries
        return sizes

    def set_entries(self, node: ast.Node, entries: Entries | None) -> None:
        if entries is not None:
            self.entry_sizes[node.id] = entries

    def operand(self, node: ast.Node) -> Operand:
        path = self.path(node)
        if path.length and path.memory[0] in _ACCUMULATORS:
            path = sizes.NO_PATH
        return Operand(node, self.types[node.id], path, self.size(node))

    # Selection

    def visit_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Select)
        self.todo.append((self.finish_select, node, 0))
        self.visit(node.operand)

    def finish_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Select)
        operand = node.operand
        cost = self.costs[operand.id]
        # Kubernetes asks for has() to be free.
        if not node.test_only:
            if self.types[operand.id].kind in (Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM):
                cost = cost.plus(ONE)
            self.paths[node.id] = self.path(operand).grown(node.field)
        self.costs[node.id] = cost

    # Calls: the arguments first, each looked at before the next, then the target.

    def visit_call(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.Call)
        args = node.args
        if node.function == "dyn":
            self.todo.append((self.finish_dyn, node, 0))
            self.visit(args[0])
            return
        if stage == 0:
            self.operands[node.id] = []
        else:
            self.operands[node.id].append(self.operand(args[stage - 1]))
        count = len(args)
        # Leaves are done at once; they take no steps of their own.
        while stage < count and type(args[stage]) in (ast.Literal, ast.Ident):
            self.visit(args[stage])
            self.operands[node.id].append(self.operand(args[stage]))
            stage += 1
        if stage < count:
            self.todo.append((self.visit_call, node, stage + 1))
            self.visit(args[stage])
            return
        reference = self.references.get(node.id)
        if reference is None or not reference.overload_ids:
            self.costs[node.id] = ZERO
            return
        self.todo.append((self.finish_call, node, 0))
        if node.target is not None:
            self.visit(node.target)

    def finish_dyn(self, node: ast.Node, _stage: int) -> None:
        """dyn() only switches type checking off; its argument keeps the size it has."""
        assert isinstance(node, ast.Call)
        arg = node.args[0]
        self.costs[node.id] = ONE.plus(self.costs[arg.id])
        self.copy_sizes(node, arg)

    def copy_sizes(self, node: ast.Node, origin: ast.Node) -> None:
        size = self.size(origin)
        if size is not None:
            self.sizes[node.id] = size
        self.set_entries(node, self.entries(origin))

    def finish_call(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Call)
        args = self.operands.pop(node.id)
        target = None
        own = ZERO
        if node.target is not None:
            own = self.costs[node.target.id]
            target = self.operand(node.target)
        worst = NOTHING
        result: Range | None = None
        for overload in self.references[node.id].overload_ids:
            cost, size = self.overload_cost(calls.Call(node, overload, target, args, self))
            worst = worst.union(cost)
            if size is not None:
                result = size if result is None else result.union(size)
            if overload in _INDEXED:
                entries = self.entries(node.args[0])
                result = None if entries is None else entries.value
                self.paths[node.id] = self.path(node.args[0]).grown(_INDEXED[overload])
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[node.id] = result
        self.costs[node.id] = own.plus(worst)

    def overload_cost(self, call: calls.Call) -> calls.Estimate:
        """Return the cost of one overload with its arguments, some of which an operator may skip."""
        node = call.node
        argument_costs = [self.costs[arg.id] for arg in node.args]
        match call.overload:
            case "logical_and" | "logical_or":
                return Range(argument_costs[0].min, argument_costs[0].plus(argument_costs[1]).max), None
            case "conditional":
                _, then, otherwise = node.args
                ours, theirs = self.entries(then), self.entries(otherwise)
                if ours is not None and theirs is not None:
                    self.set_entries(node, ours.union(theirs))
                size = (call.args[1].size or UNKNOWN).union(call.args[2].size or UNKNOWN)
                return argument_costs[0].plus(argument_costs[1].union(argument_costs[2])), size
            case _:
                cost, result = callcost.estimate(call)
                for each in argument_costs:
                    cost = cost.plus(each)
                return cost, result

    # Literals with elements

    def visit_list(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.ListLiteral)
        if stage == 0:
            self.costs[node.id] = costs.fixed(costs.LIST_COST)
            self.set_entries(node, Entries(Kind.LIST, ONE, NOTHING if node.elements else ZERO))
        else:
            element = node.elements[stage - 1]
            self.costs[node.id] = self.costs[node.id].plus(self.costs[element.id])
            value = self.entry_sizes[node.id].value.union(self.size_or_unknown(element))
            self.set_entries(node, Entries(Kind.LIST, ONE, value))
        if stage < len(node.elements):
            self.todo.append((self.visit_list, node, stage + 1))
            self.visit(node.elements[stage])

    def visit_map(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.MapLiteral)
        if stage == 0:
            nothing = NOTHING if node.entries else ZERO
            self.costs[node.id] = costs.fixed(costs.MAP_COST)
            self.set_entries(node, Entries(Kind.MAP, nothing, nothing))
        else:
            entry = node.entries[stage - 1]
            cost = self.costs[entry.key.id].plus(self.costs[entry.value.id])
            self.costs[node.id] = self.costs[node.id].plus(cost)
            entries = self.entry_sizes[node.id]
            key = entries.key.union(self.size_or_unknown(entry.key))
            self.set_entries(node, Entries(Kind.MAP, key, entries.value.union(self.size_or_unknown(entry.value))))
        if stage < len(node.entries):
            entry = node.entries[stage]
            self.todo.append((self.visit_map, node, stage + 1))
            self.visit_later(entry.value)
            self.visit(entry.key)

    def visit_message(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.MessageLiteral)
        if stage == 0:
            self.costs[node.id] = costs.fixed(costs.MESSAGE_COST)
        else:
            value = node.fields[stage - 1].value
            self.costs[node.id] = self.costs[node.id].plus(self.costs[value.id])
        if stage < len(node.fields):
            self.todo.append((self.visit_message, node, stage + 1))
            self.visit(node.fields[stage].value)

    # Comprehensions

    def visit_comprehension(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.todo.append((self.enter, node, 0))
        self.visit_later(node.accu_init)
        self.visit(node.iter_range)

    def bind(self, name: str, path: sizes.Path, *, size: Range | None, entries: Entries | None) -> None:
        self.scopes.setdefault(name, []).append(_Variable(path, size, entries))

    def enter(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        initial = node.accu_init
        self.bind(node.accu_var, self.path(initial), size=self.size(initial), entries=self.entries(initial))
        if _is_binding(node):
            self.todo.append((self.finish_binding, node, 0))
            self.visit(node.result)
            return
        self.bind_iterated(node)
        self.todo.append((self.leave, node, 0))
        self.visit_later(node.loop_step)
        self.visit(node.loop_condition)

    def bind_iterated(self, node: ast.Comprehension) -> None:
        """Bind one variable to elements of a list or keys of a map, or two to indexes or keys and to values."""
        over = node.iter_range
        entries = self.entries(over)
        kind = self.types[over.id].kind if entries is None else entries.kind
        key = None if entries is None else entries.key
        value = None if entries is None else entries.value
        is_list = kind is Kind.LIST
        if node.iter_var2 is None:
            path = self.path(over).grown("@items" if is_list else "@keys")
            self.bind(node.iter_var, path, size=value if is_list else key, entries=None)
            return
        path = self.path(over).grown("@indices" if is_list else "@keys")
        self.bind(node.iter_var, path, size=key, entries=None)
        path = self.path(over).grown("@items" if is_list else "@values")
        self.bind(node.iter_var2, path, size=value, entries=None)

    def leave(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.scopes[node.iter_var].pop()
        if node.iter_var2 is not None:
            self.scopes[node.iter_var2].pop()
        self.todo.append((self.finish_loop, node, 0))
        self.visit(node.result)

    def finish_loop(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.scopes[node.accu_var].pop()
        costs = self.costs
        count = self.size_or_unknown(node.iter_range)
        loop = count.times(costs[node.loop_step.id].plus(costs[node.loop_condition.id]))
        cost = costs[node.iter_range.id].plus(costs[node.accu_init.id]).plus(costs[node.result.id])
        costs[node.id] = cost.plus(loop)
        initial = node.accu_init
        if type(initial) is ast.Literal:
            size = self.size(initial)
            if size is not None:
                self.sizes[node.id] = size
        elif type(initial) in (ast.ListLiteral, ast.MapLiteral):
            self.sizes[node.id] = count
            self.set_entries(node, self.entries(node.loop_step))

    def finish_binding(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.scopes[node.accu_var].pop()
        costs = self.costs
        cost = costs[node.iter_range.id].plus(costs[node.accu_init.id])
        costs[node.id] = cost.plus(costs[node.result.id])
        self.copy_sizes(node, node.result)


_VISITS: dict[type, Callable[[_Walk, ast.Node, int], None]] = {
    ast.Select: _Walk.visit_select,
    ast.Call: _Walk.visit_call,
    ast.ListLiteral: _Walk.visit_list,
    ast.MapLiteral: _Walk.visit_map,
    ast.MessageLiteral: _Walk.visit_message,
    ast.Comprehension: _Walk.visit_comprehension,
}
_INDEXED = {"index_list": "@items", "index_map": "@values"}


def _is_binding(node: ast.Comprehension) -> bool:
    """Return True if this is what cel.bind() expands to: its loop never runs."""
    return (
        type(node.iter_range) is ast.ListLiteral
        and not node.iter_range.elements
        and type(node.loop_condition) is ast.Literal
        and node.loop_condition.value is False
        and node.accu_var != macros.OLD_ACCUMULATOR
    )


def _is_scalar(type_: types.Type) -> bool:
    """Return True if all values of the type have one size."""
    while type_.is_optional:
        type_ = type_.params[0]
    return type_.kind in _SCALARS


def _literal_size(node: ast.Literal) -> Range:
    value = node.value
    return costs.fixed(len(value)) if isinstance(value, str | bytes) else ONE
