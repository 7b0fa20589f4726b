"""Selectors of v1alpha2: expressions over the attributes of a named resource (KEP-4381, first alpha).

They come in two forms, which can be mixed. Kubernetes 1.30 has a map for each type of attribute, such as
``attributes.quantity["memory"].isGreaterThan(quantity("32Gi"))``. The KEP's own examples compare an attribute of any
type with a literal, ``attributes["memory"] >= "32Gi"``: what the literal means is decided by the attribute's type, so
texts are read as quantities or versions where the attribute is one.

Attributes are named by literals, and asked for with an index, a selection, ``in`` or ``has``: that is what can be
translated for devices (:mod:`drachma.structured.selectors`). An expression that uses the maps in another way is
refused here with the place that it is used in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from drachma import errors
from drachma.cel import ast, environment, parser, printer, program, sizes, source, tree, types
from drachma.values import quantity, semver

VARIABLE: Final = "attributes"

TYPES: Final = {
    "quantity": types.QUANTITY,
    "bool": types.BOOL,
    "int": types.INT,
    "intslice": types.list_of(types.INT),
    "string": types.STRING,
    "stringslice": types.list_of(types.STRING),
    "version": types.SEMVER,
}
"""The types of attributes, as selectors name them."""

COMPARISONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"})
MIRRORED: Final = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}
"""Each comparison with its sides exchanged."""


_LIST_MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})


class Read(msgspec.Struct, frozen=True):
    """A part of an expression that asks for an attribute; ``type`` is empty in the form that is open to all types."""

    type: str
    name: str


class Presence(Read, frozen=True):
    """Condition that an attribute exists."""


class Value(Read, frozen=True):
    """The attribute's value; ``is_list`` where the expression can only use a list."""

    is_list: bool = False


class OptionalValue(Read, frozen=True):
    """The attribute's value if there is one, as an optional."""


class Comparison(msgspec.Struct, frozen=True):
    """An attribute of any type compared with a literal, the attribute on the left."""

    name: str
    operator: str
    literal: str | float

    @property
    def quantity_text(self) -> str | None:
        """The literal as the text of a quantity, if it can be one."""
        if isinstance(self.literal, bool | float):
            return None
        try:
            return str(quantity.Quantity.parse(str(self.literal).strip()))
        except errors.InvalidValueError:
            return None

    @property
    def version_text(self) -> str | None:
        """The literal as a version in its full form, if it can be one: with or without a ``v`` and a patch number."""
        if not isinstance(self.literal, str):
            return None
        try:
            return str(semver.SemVer.parse_tolerant(self.literal.strip()))
        except errors.InvalidValueError:
            return None


Part = Presence | Value | OptionalValue | Comparison


class Selector(msgspec.Struct, frozen=True):
    """A selector that was checked: its type is bool, and all that it asks of attributes is known."""

    expression: str
    root: ast.Node

    def rewritten(self, substitute: Callable[[Part], ast.Node | None]) -> ast.Node:
        """Return the expression with every part that asks for an attribute replaced; None leaves a part as it is."""

        lists = {id(operand) for operand in _list_operands(self.root)}

        def make(node: ast.Node) -> ast.Node | None:
            part = _part(node)
            if isinstance(part, Value) and id(node) in lists:
                part = msgspec.structs.replace(part, is_list=True)
            return None if part is None else substitute(part)

        return _replace(self.root, make)


def compile_selector(expression: str) -> Selector:
    """Return the selector that a text is.

    Raises:
        program.CompilationError: it is no expression, does not give a bool, or uses attributes in a way that cannot be
            translated.
    """
    compiled = program.compile_expression(expression, selector_environment())
    if compiled.result != types.BOOL and not compiled.result.is_dynamic:
        raise program.CompilationError("must evaluate to bool")
    try:
        root = parser.parse(expression, {}).root
    except source.CompileError as error:
        raise program.CompilationError(f"compilation failed: {error}") from None
    selector = Selector(expression, root)
    _refuse_other_uses(selector)
    return selector


def max_cost(expression: str) -> int:
    """Return the highest cost of an evaluation. Raises CompilationError."""
    return program.compile_expression(expression, selector_environment()).max_cost


@functools.cache
def selector_environment() -> environment.Environment:
    """Return the variables that a selector sees, with the libraries of all expressions."""
    variables = {f"{VARIABLE}.{name}": types.map_of(types.STRING, type_) for name, type_ in TYPES.items()}
    variables[VARIABLE] = types.map_of(types.STRING, types.DYN)
    return environment.base_environment(variables, bounds=dict.fromkeys(variables, _BOUND))


_TEXT: Final = sizes.Bound(environment.MAX_ATTRIBUTE_VALUE_LENGTH)
_BOUND: Final = sizes.Bound(
    environment.MAX_ATTRIBUTES_AND_CAPACITIES,
    key=sizes.Bound(environment.MAX_ID_LENGTH),
    # A text, or a list of them: what devices allow, since that is where resources end up.
    element=sizes.Bound(environment.MAX_ATTRIBUTE_VALUE_LENGTH, element=_TEXT),
    any_name=True,
)


def _refuse_other_uses(selector: Selector) -> None:
    """Refuses an expression in which the maps are used as values of their own."""
    remainder = selector.rewritten(lambda _: ast.Literal(0, value=True))
    for node in tree.descendants(remainder):
        if isinstance(node, ast.Ident) and node.name == VARIABLE:
            raise program.CompilationError(
                f"{VARIABLE} can only be asked for an attribute that is named by a literal, "
                f'as in {VARIABLE}["memory"], {VARIABLE}.quantity["memory"] or "memory" in {VARIABLE}.quantity: '
                f"{printer.show(selector.root)}"
            )


def _replace(root: ast.Node, make: Callable[[ast.Node], ast.Node | None]) -> ast.Node:
    """Return the tree with nodes replaced from the top: nothing below a replaced node is looked at."""
    replacement = make(root)
    if replacement is not None:
        return replacement
    below = tree.children(root)
    return tree.with_children(root, tuple(_replace(each, make) for each in below)) if below else root


def _list_operands(root: ast.Node) -> Iterator[ast.Node]:
    """Yield the parts of an expression that have to be lists: what ``in`` searches, and what macros go through."""
    for node in (root, *tree.descendants(root)):
        match node:
            case ast.Call(function="@in", args=(_, container), target=None):
                yield container
            case ast.Call(function=function, target=operand) if operand is not None and function in _LIST_MACROS:
                yield operand


def _part(node: ast.Node) -> Part | None:
    match node:
        case ast.Call(function=function, args=(left, right), target=None) if function in COMPARISONS:
            return _comparison(function, left, right) or _comparison(MIRRORED[function], right, left)
        case ast.Call(function="@in", args=(ast.Literal(value=str() as name), container), target=None):
            type_ = _map(container)
            return None if type_ is None else Presence(type_, name)
        case ast.Call(function="has", args=(operand,), target=None):
            value = _value(operand)
            return None if value is None else Presence(value.type, value.name)
        case ast.Call(function="_[?_]" | "_?._", args=(container, ast.Literal(value=str() as name)), target=None):
            type_ = _map(container)
            return None if type_ is None else OptionalValue(type_, name)
    return _value(node)


def _comparison(operator: str, left: ast.Node, right: ast.Node) -> Comparison | None:
    value = _value(left)
    if value is None or value.type or not isinstance(right, ast.Literal):
        return None
    literal = right.value
    if literal is None or isinstance(literal, bytes):
        return None
    return Comparison(value.name, operator, literal)


def _value(node: ast.Node) -> Value | None:
    match node:
        case ast.Call(function="_[_]", args=(container, ast.Literal(value=str() as name)), target=None):
            type_ = _map(container)
            return None if type_ is None else Value(type_, name)
        case ast.Select(operand=container, field=name, test_only=False):
            type_ = _map(container)
            return None if type_ is None or (not type_ and name in TYPES) else Value(type_, name)
    return None


def _map(node: ast.Node) -> str | None:
    """Return the type whose map a node is; empty for the map that is open to all types."""
    match node:
        case ast.Ident(name=name) if name == VARIABLE:
            return ""
        case ast.Select(operand=ast.Ident(name=name), field=type_, test_only=False) if name == VARIABLE:
            return type_ if type_ in TYPES else None
    return None
