"""Groups of options that several commands share: a struct whose fields are options.

A command takes the struct as a parameter, and :func:`expand` replaces that parameter by the options of the fields, in
their order, because Typer knows parameters of functions only.
"""

import functools
import inspect
import typing
from collections.abc import Callable

import msgspec


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters of struct types are replaced by their fields."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups: dict[str, type[msgspec.Struct]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            groups[parameter.name] = kind
            parameters += _fields(kind)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    @functools.wraps(command)
    def expanded(**values: object) -> None:
        made = {
            name: group(**{field: values.pop(field) for field in group.__struct_fields__})
            for name, group in groups.items()
        }
        command(**made, **values)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _fields(group: type[msgspec.Struct]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in msgspec.structs.fields(group)
    ]
