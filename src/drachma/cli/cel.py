"""``drachma cel``: check selector expressions and try them on devices."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from drachma import cel, errors
from drachma.api import codec, gates, resourceslice
from drachma.cel import program as programs
from drachma.cel import reads
from drachma.cli import batch as batch_lines
from drachma.offline import celcase, manifestfiles
from drachma.values import quotation

app = typer.Typer(
    help="Check selector expressions and try them on devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_Gates = Annotated[
    str, typer.Option("--feature-gates", help="Features to switch, such as DRAListTypeAttributes=false.")
]
_Stored = Annotated[
    bool, typer.Option("--stored", help="Read it as an expression that is already stored, not as a new one.")
]


@app.command()
def check(
    expression: Annotated[str, typer.Argument(help="A CEL expression over 'device'.")],
    feature_gates: _Gates = "",
    stored: _Stored = False,
) -> None:
    """Show an expression's type and estimated cost, or what is wrong with it."""
    program = _compile(expression, feature_gates, stored=stored)
    typer.echo(f"type: {program.result}")
    typer.echo(f"estimated cost: {program.max_cost} of {programs.COST_LIMIT}")
    if program.max_cost > programs.COST_LIMIT:
        raise errors.CelError("too complex, exceeds cost limit")


@app.command(name="eval")
def evaluate(
    expression: Annotated[str | None, typer.Argument(help="A CEL expression over 'device'.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="A file with one device, or - .")] = None,
    slices: Annotated[str | None, typer.Option("--slices", help="A file or folder with ResourceSlices, or - .")] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Answer cases, one JSON object a line.")] = False,
    feature_gates: _Gates = "",
    stored: _Stored = False,
) -> None:
    """Show which devices an expression matches, and the values that decided it."""
    if batch:
        if expression is not None or device is not None or slices is not None:
            raise typer.BadParameter("--batch reads everything from standard input")
        batch_lines.write(celcase.answers(sys.stdin.buffer))
        return
    if expression is None:
        raise typer.BadParameter("an expression is needed")
    if (device is None) == (slices is None):
        raise typer.BadParameter("either --device or --slices is needed")
    program = _compile(expression, feature_gates, stored=stored)
    found = _device(device) if device is not None else _devices(slices or "")
    if not _show(program, found):
        raise typer.Exit(1)


def _compile(expression: str, feature_gates: str, *, stored: bool) -> cel.Program:
    switched = gates.Gates.parse(feature_gates)
    env = cel.device_environment(
        consumable_capacity=switched.on(gates.Gate.CONSUMABLE_CAPACITY),
        list_type_attributes=switched.on(gates.Gate.LIST_TYPE_ATTRIBUTES),
        expressions=cel.Expressions.STORED if stored else cel.Expressions.NEW,
    )
    return cel.compile_expression(expression, env)


def _device(path: str) -> Iterator[tuple[str, cel.Device]]:
    for source in manifestfiles.read_all([path]):
        try:
            form = celcase.read_device(source.content)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{source.place}: {error}") from None
        yield form.name or form.driver, form.device()


def _devices(path: str) -> Iterator[tuple[str, cel.Device]]:
    for source in manifestfiles.read_all([path]):
        try:
            found = codec.decode(source.content)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{source.place}: {error}") from None
        if not isinstance(found, resourceslice.ResourceSlice):
            raise errors.DecodeError(f"{source.place}: {codec.title(source.content)} is not a ResourceSlice")
        spec = found.spec
        for device in spec.devices:
            yield f"{spec.driver}/{spec.pool.name}/{device.name}", cel.Device.of(device, spec.driver)


def _show(program: cel.Program, found: Iterable[tuple[str, cel.Device]]) -> bool:
    """Prints the verdict on every device; whether all of them had one."""
    is_good = True
    for name, subject in found:
        outcome = program.evaluate(subject)
        if outcome.error is not None:
            is_good = False
            typer.echo(f"{name}: error: {outcome.error}")
        else:
            typer.echo(f"{name}: {'matches' if outcome.match else 'does not match'}")
        for path, value in _values(program.reads, subject):
            typer.echo(f"  {path} = {value}")
    return is_good


def _values(read: frozenset[reads.Path] | None, subject: cel.Device) -> Iterator[tuple[str, str]]:
    """What an expression can have looked at, as it would be written in CEL, and its value on a device."""
    paths = (
        sorted(read)
        if read is not None
        else [("allowMultipleAllocations",), ("attributes",), ("capacity",), ("driver",)]
    )
    for path in paths:
        match path:
            case ("driver",):
                yield "device.driver", quotation.quote(subject.driver)
            case ("allowMultipleAllocations",):
                yield "device.allowMultipleAllocations", _spell(subject.allow_multiple_allocations)
            case (field, *rest):
                yield from _entries(field, rest, subject)


def _entries(field: str, rest: list[str], subject: cel.Device) -> Iterator[tuple[str, str]]:
    table = subject.attributes if field == "attributes" else subject.capacity
    domains = rest[:1] or sorted(table)
    for domain in domains:
        entries = table.get(domain, {})
        for name in rest[1:] or sorted(entries):
            value = _spell(entries[name]) if name in entries else "(not set)"
            yield f"device.{field}[{quotation.quote(domain)}].{name}", value


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quotation.quote(value)
    return f"[{', '.join(map(_spell, value))}]" if isinstance(value, list) else str(value)
