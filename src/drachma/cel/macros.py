"""Macros: calls that the parser replaces by comprehensions, with upstream's expansions and messages.

An expansion is built from nodes that stand where the macro's open parenthesis stands, so that errors and costs
point where upstream points. ``expand`` functions return the new node, None to leave the call as it is, or raise
``MacroError`` about one of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from drachma import errors
from drachma.cel import ast

# The accumulator of all expansions; not an identifier one can write, so it never meets a name of the expression.
ACCUMULATOR = "@result"
# Its older name can be written; as an iteration variable it is refused.
OLD_ACCUMULATOR = "__result__"
UNUSED = "#unused"
SORT_INPUT = "@__sortBy_input__"


class MacroError(errors.CelError):
    """A macro's argument is not of the form that it needs."""

    def __init__(self, argument: ast.Node, message: str) -> None:
        super().__init__(message)
        self.argument = argument


class Builder(Protocol):
    """Interface of macro expansion to the parser: ids for new nodes at the place of the macro call."""

    def fresh(self) -> int:
        """Return the id of a new node at the place of the macro call."""

    def copy(self, node: ast.Node) -> ast.Node:
        """Return a copy of the tree with new ids."""


Expand = Callable[[Builder, "ast.Node | None", list[ast.Node]], "ast.Node | None"]
# Keyed by function, number of arguments, and whether it is called on a target.
Macros = Mapping[tuple[str, int, bool], Expand]


def _call(build: Builder, function: str, *args: ast.Node) -> ast.Node:
    return ast.Call(build.fresh(), function, args)


def _accumulator(build: Builder) -> ast.Node:
    return ast.Ident(build.fresh(), ACCUMULATOR)


def _variable(argument: ast.Node, message: str) -> str:
    if type(argument) is not ast.Ident:
        raise MacroError(argument, message)
    return argument.name


def _iteration_variable(argument: ast.Node, message: str) -> str:
    name = _variable(argument, message)
    if name in (ACCUMULATOR, OLD_ACCUMULATOR):
        raise MacroError(argument, "iteration variable overwrites accumulator variable")
    return name


def _two_variables(args: list[ast.Node]) -> tuple[str, str]:
    message = "argument must be a simple name"
    first, second = _variable(args[0], message), _variable(args[1], message)
    if first == second:
        raise MacroError(args[1], f"duplicate variable name: {first}")
    return _iteration_variable(args[0], message), _iteration_variable(args[1], message)


def _has(build: Builder, _target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    argument = args[0]
    if type(argument) is not ast.Select:
        raise MacroError(argument, "invalid argument to has() macro")
    return ast.Select(build.fresh(), argument.operand, argument.field, test_only=True)


class _Fold:
    """The parts of a comprehension by kind of macro; ``variables`` is one name or two."""

    def __init__(self, build: Builder, target: ast.Node, variables: tuple[str, ...]) -> None:
        self._build = build
        self._target = target
        self._variables = variables

    def all(self, predicate: ast.Node) -> ast.Node:
        build = self._build
        return self._comprehension(
            ast.Literal(build.fresh(), value=True),
            condition=_call(build, "@not_strictly_false", _accumulator(build)),
            step=_call(build, "_&&_", _accumulator(build), predicate),
        )

    def exists(self, predicate: ast.Node) -> ast.Node:
        build = self._build
        return self._comprehension(
            ast.Literal(build.fresh(), value=False),
            condition=_call(build, "@not_strictly_false", _call(build, "!_", _accumulator(build))),
            step=_call(build, "_||_", _accumulator(build), predicate),
        )

    def exists_one(self, predicate: ast.Node) -> ast.Node:
        build = self._build
        one_more = _call(build, "_+_", _accumulator(build), ast.Literal(build.fresh(), 1))
        return self._comprehension(
            ast.Literal(build.fresh(), 0),
            step=_call(build, "_?_:_", predicate, one_more, _accumulator(build)),
            result=_call(build, "_==_", _accumulator(build), ast.Literal(build.fresh(), 1)),
        )

    def into_list(self, element: ast.Node, *, keep: ast.Node | None) -> ast.Node:
        build = self._build
        step = _call(build, "_+_", _accumulator(build), ast.ListLiteral(build.fresh(), (element,)))
        return self._comprehension(ast.ListLiteral(build.fresh(), ()), step=self._only(keep, step))

    def into_map(self, *entry: ast.Node, keep: ast.Node | None) -> ast.Node:
        build = self._build
        step = _call(build, "cel.@mapInsert", _accumulator(build), *entry)
        return self._comprehension(ast.MapLiteral(build.fresh(), ()), step=self._only(keep, step))

    def _only(self, keep: ast.Node | None, step: ast.Node) -> ast.Node:
        if keep is None:
            return step
        return _call(self._build, "_?_:_", keep, step, _accumulator(self._build))

    def _comprehension(
        self,
        initial: ast.Node,
        *,
        step: ast.Node,
        condition: ast.Node | None = None,
        result: ast.Node | None = None,
    ) -> ast.Node:
        build = self._build
        return ast.Comprehension(
            build.fresh(),
            iter_range=self._target,
            iter_var=self._variables[0],
            accu_var=ACCUMULATOR,
            accu_init=initial,
            loop_condition=condition or ast.Literal(build.fresh(), value=True),
            loop_step=step,
            result=result or _accumulator(build),
            iter_var2=self._variables[1] if len(self._variables) == 2 else None,
        )


def _quantifier(name: str) -> Expand:
    def expand(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
        assert target is not None
        variable = _iteration_variable(args[0], "argument must be a simple name")
        node: ast.Node = getattr(_Fold(build, target, (variable,)), name)(args[1])
        return node

    return expand


def _quantifier2(name: str) -> Expand:
    def expand(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
        assert target is not None
        node: ast.Node = getattr(_Fold(build, target, _two_variables(args)), name)(args[2])
        return node

    return expand


def _map(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    variable = _iteration_variable(args[0], "argument is not an identifier")
    return _Fold(build, target, (variable,)).into_list(args[-1], keep=args[1] if len(args) == 3 else None)


def _filter(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    variable = _iteration_variable(args[0], "argument is not an identifier")
    return _Fold(build, target, (variable,)).into_list(args[0], keep=args[1])


def _transform_list(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    fold = _Fold(build, target, _two_variables(args))
    return fold.into_list(args[-1], keep=args[2] if len(args) == 4 else None)


def _transform_map(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    variables = _two_variables(args)
    key = ast.Ident(build.fresh(), variables[0])
    return _Fold(build, target, variables).into_map(key, args[-1], keep=args[2] if len(args) == 4 else None)


def _transform_map_entry(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    fold = _Fold(build, target, _two_variables(args))
    return fold.into_map(args[-1], keep=args[2] if len(args) == 4 else None)


def _binding(build: Builder, name: str, *, value: ast.Node, result: ast.Node) -> ast.Node:
    """``name`` stands for ``value`` in ``result``: a fold over nothing, whose accumulator is the name."""
    return ast.Comprehension(
        build.fresh(),
        iter_range=ast.ListLiteral(build.fresh(), ()),
        iter_var=UNUSED,
        accu_var=name,
        accu_init=value,
        loop_condition=ast.Literal(build.fresh(), value=False),
        loop_step=ast.Ident(build.fresh(), name),
        result=result,
    )


def _bind(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node | None:
    if type(target) is not ast.Ident or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return _binding(build, name, value=args[1], result=args[2])


def _optional(build: Builder, target: ast.Node | None, args: list[ast.Node], *, flat: bool) -> ast.Node:
    assert target is not None
    macro = "optFlatMap" if flat else "optMap"
    name = _variable(args[0], f"{macro}() variable name must be a simple identifier")
    value = ast.Call(build.fresh(), "value", (), build.copy(target))
    mapped = _binding(build, name, value=value, result=args[1])
    return _call(
        build,
        "_?_:_",
        ast.Call(build.fresh(), "hasValue", (), target),
        mapped if flat else _call(build, "optional.of", mapped),
        _call(build, "optional.none"),
    )


def _opt_map(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    return _optional(build, target, args, flat=False)


def _opt_flat_map(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    return _optional(build, target, args, flat=True)


def _sort_by(build: Builder, target: ast.Node | None, args: list[ast.Node]) -> ast.Node:
    assert target is not None
    if isinstance(target, ast.Literal | ast.MapLiteral | ast.MessageLiteral):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target, message)
    keys = _map(build, ast.Ident(build.fresh(), SORT_INPUT), args)
    by_keys = ast.Call(build.fresh(), "@sortByAssociatedKeys", (keys,), ast.Ident(build.fresh(), SORT_INPUT))
    return _binding(build, SORT_INPUT, value=target, result=by_keys)


STANDARD: Macros = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("exists_one"),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
# The newer spelling of exists_one; part of the language, but Kubernetes' environment has only its two-variable form.
EXISTS_ONE: Macros = {("existsOne", 2, True): _quantifier("exists_one")}
OPTIONALS: Macros = {("optMap", 2, True): _opt_map, ("optFlatMap", 2, True): _opt_flat_map}
BINDINGS: Macros = {("bind", 3, True): _bind}
SORTING: Macros = {("sortBy", 2, True): _sort_by}
TWO_VARIABLES: Macros = {
    ("all", 3, True): _quantifier2("all"),
    ("exists", 3, True): _quantifier2("exists"),
    ("existsOne", 3, True): _quantifier2("exists_one"),
    ("exists_one", 3, True): _quantifier2("exists_one"),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}
