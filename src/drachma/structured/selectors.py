"""Selectors of v1alpha2 as selectors of devices, and their evaluation on published resources.

A translated selector is true for the device of a resource if the original is true for the resource. On devices,
quantities are capacities and other values are attributes. So a typed read (:mod:`drachma.cel.namedresources`) becomes a
read of one of the two, and a comparison with a literal tests first which one exists.

:func:`accepts` evaluates a selector on a resource without translation, which migration uses to check its result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import cel, errors
from drachma.bounds import memory
from drachma.cel import ast, cache, lexer, namedresources, parser, printer, program
from drachma.cel.runtime import faults, versions
from drachma.structured import identifiers, resources

_OPERATORS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "_==_": "==", "_!=_": "!="}

_NO_ANSWER: Final = "[true][1]"
"""Expression that is neither true nor false."""

_ANY_TYPES: Final[Mapping[str, str]] = {}
_PLAIN_TYPES: Final = frozenset({"bool", "int", "string"})

_TYPE_TESTS: Final = {
    "bool": "type({0}) in [bool]",
    "int": "type({0}) in [int]",
    "string": "type({0}) in [string]",
    "intslice": "type({0}) in [list] && type({0}[0]) in [int]",
    "stringslice": "type({0}) in [list] && type({0}[0]) in [string]",
    "version": 'type({0}) in [type(semver("0.0.0"))]',
}
"""Tests for the type of a device's attribute. Equality of types has no bound on its cost, but lists have one. Lists of
devices are never empty."""


def driver_selector(expression: str, driver: str) -> str:
    """Return a selector that is true for devices of a driver whose resources match the expression.

    Devices of other drivers are excluded first, since they may lack the attributes that it reads.

    Raises:
        cel.CompilationError: the expression is not a selector of v1alpha2.
    """
    translated = translate(expression, driver)
    return (
        all_devices_selector(driver)
        if expression.strip() == "true"
        else conjunction(all_devices_selector(driver), translated)
    )


def all_devices_selector(driver: str) -> str:
    """Return a selector of all devices of a driver."""
    return f"device.driver == {_quoted(driver)}"


def conjunction(*expressions: str) -> str:
    """Return an expression that is true if all others are, evaluated in their order."""
    return printer.show(_node(" && ".join(f"({each})" for each in expressions)))


def translate(expression: str, driver: str, *, types: Mapping[str, str] = _ANY_TYPES) -> str:
    """Return the expression for devices that are known to belong to a driver.

    ``types`` are attributes with one type in all slices. Reads of them become shorter.

    Raises:
        cel.CompilationError: the expression is not a selector of v1alpha2.
    """
    selector = _compile(expression)
    return printer.show(selector.rewritten(lambda part: _node(_translation(_narrowed(part, types), driver, types))))


def accepts(expression: str, resource: resources.Resource) -> bool:
    """Return True if a selector matches a resource.

    Raises:
        cel.CompilationError: the expression is not a selector of v1alpha2.
        cel.EvaluationError: the selector fails, for example because an attribute does not exist.
    """
    selector = _compile(expression)
    senseless: list[str] = []
    typed = selector.rewritten(lambda part: _resolved(part, resource, senseless))
    compiled = program.compile_expression(printer.show(typed), namedresources.selector_environment())
    result = compiled.evaluate_variables(_variables(resource))
    if isinstance(result.value, faults.Fault | faults.Abort):
        raise cel.EvaluationError(senseless[0] if senseless else str(result.value), result.cost)
    if not isinstance(result.value, bool):
        raise cel.EvaluationError(f"selector gives {result.value!r}, which is neither true nor false", result.cost)
    return result.value


def _compile(expression: str) -> namedresources.Selector:
    selector = _selectors.get(expression)
    if selector is None:
        selector = namedresources.compile_selector(expression)
        _selectors.put(expression, selector, size=cache.PROGRAM_BYTES + cache.CHARACTER_BYTES * len(expression))
    return selector


_selectors: Final = memory.Cache[str, namedresources.Selector]("expressions")


def _node(text: str) -> ast.Node:
    return parser.parse(text, {}).root


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _member(container: str, name: str) -> str:
    """Return a field of a map. Reserved words cannot be selected."""
    identifier = identifiers.attribute(name)
    return f"{container}[{_quoted(identifier)}]" if identifier in lexer.RESERVED else f"{container}.{identifier}"


# For devices


def _narrowed(part: namedresources.Part, types: Mapping[str, str]) -> namedresources.Part:
    """Return a read of an attribute of any type as a read of its actual type."""
    if isinstance(part, namedresources.Comparison) or part.type or isinstance(part, namedresources.Presence):
        return part
    return msgspec.structs.replace(part, type=types.get(part.name, ""))


def _translation(part: namedresources.Part, driver: str, types: Mapping[str, str]) -> str:
    attributes, capacity = f"device.attributes[{_quoted(driver)}]", f"device.capacity[{_quoted(driver)}]"
    attribute, amount = _member(attributes, part.name), _member(capacity, part.name)
    key = _quoted(identifiers.attribute(part.name))
    has_attribute, has_amount = f"{key} in {attributes}", f"{key} in {capacity}"
    match part:
        case namedresources.Comparison():
            type_ = types.get(part.name, "")
            return _device_comparison(part, type_, attribute=attribute, amount=amount, has_amount=has_amount)
        case namedresources.Presence(type="quantity"):
            return has_amount
        case namedresources.Presence(type=""):
            return f"({has_attribute} || {has_amount})"
        case namedresources.Presence(type=type_):
            return f"({has_attribute} && {_TYPE_TESTS[type_].format(attribute)})"
        case namedresources.OptionalValue(type="quantity"):
            return f"{capacity}[?{key}]"
        case namedresources.OptionalValue(type=""):
            return f"({has_amount} ? dyn({capacity}[?{key}]) : dyn({attributes}[?{key}]))"
        case namedresources.OptionalValue():
            return f"{attributes}[?{key}]"
        case namedresources.Value(type="quantity"):
            return amount
        case namedresources.Value(type="", is_list=True):
            # No quantity is a list. That bounds the cost, which a choice between the two does not.
            return attribute
        case namedresources.Value(type=""):
            return f"({has_amount} ? dyn({amount}) : dyn({attribute}))"
        case namedresources.Value():
            return attribute


def _device_comparison(
    part: namedresources.Comparison, type_: str, *, attribute: str, amount: str, has_amount: str
) -> str:
    operator, literal = _OPERATORS[part.operator], _literal(part.literal)
    plain = f"{attribute} {operator} {literal}"
    version_test, quantity_test = _version_comparison(part, attribute), _quantity_comparison(part, amount)
    if type_ == "quantity" and quantity_test is not None:
        return quantity_test
    if type_ == "version" and version_test is not None:
        return version_test
    if type_ in _PLAIN_TYPES:
        return plain
    if version_test is not None:
        plain = f"{_TYPE_TESTS['string'].format(attribute)} ? {plain} : {version_test}"
    if quantity_test is not None:
        plain = f"{has_amount} ? {quantity_test} : ({plain})"
    return f"({plain})"


def _quantity_comparison(part: namedresources.Comparison, amount: str) -> str | None:
    if part.quantity_text is None:
        return None
    return f"{amount}.compareTo(quantity({_quoted(part.quantity_text)})) {_OPERATORS[part.operator]} 0"


def _version_comparison(part: namedresources.Comparison, attribute: str) -> str | None:
    if part.version_text is None:
        return None
    return f"{attribute}.compareTo(semver({_quoted(part.version_text)})) {_OPERATORS[part.operator]} 0"


def _literal(value: str | float) -> str:
    return printer.show(ast.Literal(0, value))


# Evaluation on published resources


def _resolved(part: namedresources.Part, resource: resources.Resource, senseless: list[str]) -> ast.Node | None:
    """Return a comparison of an attribute whose type is known, or None for other parts.

    A comparison of incomparable values is added to ``senseless`` and fails, which only matters if the rest of the
    expression leaves it open.
    """
    if not isinstance(part, namedresources.Comparison):
        return None
    type_ = resource.types.get(part.name)
    expression = f"attributes.{type_}[{_quoted(part.name)}]"
    comparison: str | None
    match type_:
        case "quantity":
            comparison = _quantity_comparison(part, expression)
        case "version":
            comparison = _version_comparison(part, expression)
        case _:
            return None
    if comparison is None:
        senseless.append(f"attribute {part.name} is a {type_} and cannot be compared with {_literal(part.literal)}")
        return _node(_NO_ANSWER)
    return _node(f"({comparison})")


def _variables(resource: resources.Resource) -> Mapping[str, Any]:
    by_type: dict[str, dict[str, Any]] = {name: {} for name in namedresources.TYPES}
    for name, value in resource.attributes.items():
        by_type[resource.types[name]][name] = _native(value)
    everything = {name: value for values in by_type.values() for name, value in values.items()}
    prefix = namedresources.VARIABLE
    return {prefix: everything, **{f"{prefix}.{name}": values for name, values in by_type.items()}}


def _native(value: resources.Value) -> Any:
    if isinstance(value, resources.Version):
        try:
            return versions.parse(value.text)
        except errors.CelError as error:
            raise cel.EvaluationError(f"parse semantic version: {error}", None) from None
    return list(value) if isinstance(value, tuple) else value
