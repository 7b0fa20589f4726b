"""Expressions evaluated on devices, for ``drachma cel``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import typer

from drachma import cel, errors
from drachma.api import codec, gates, resourceslice
from drachma.cel import reads
from drachma.offline import celcase, manifestfiles
from drachma.values import quotation


def compile_expression(expression: str, feature_gates: str, *, stored: bool) -> cel.Program:
    """Return the program of an expression over devices. Raises errors.CelError."""
    enabled = gates.Gates.parse(feature_gates)
    env = cel.device_environment(
        consumable_capacity=enabled.on(gates.Gate.CONSUMABLE_CAPACITY),
        list_type_attributes=enabled.on(gates.Gate.LIST_TYPE_ATTRIBUTES),
        expressions=cel.Expressions.STORED if stored else cel.Expressions.NEW,
    )
    return cel.compile_expression(expression, env)


def read_device(path: str) -> Iterator[tuple[str, cel.Device]]:
    """Yield the name and the device in a file."""
    for source in manifestfiles.read_all([path]):
        try:
            form = celcase.read_device(source.content)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{source.place}: {error}") from None
        yield form.name or form.driver, form.device()


def read_slices(path: str) -> Iterator[tuple[str, cel.Device]]:
    """Yield the name and the device for each device of the ResourceSlices in files."""
    for source in manifestfiles.read_all([path]):
        try:
            resource_slice = codec.decode(source.content)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{source.place}: {error}") from None
        if not isinstance(resource_slice, resourceslice.ResourceSlice):
            raise errors.DecodeError(f"{source.place}: {codec.title(source.content)} is not a ResourceSlice")
        spec = resource_slice.spec
        for device in spec.devices:
            yield f"{spec.driver}/{spec.pool.name}/{device.name}", cel.Device.of(device, spec.driver)


def print_matches(program: cel.Program, devices: Iterable[tuple[str, cel.Device]]) -> bool:
    """Print the result for every device. Return False if an evaluation failed."""
    is_good = True
    for name, device in devices:
        outcome = program.evaluate(device)
        if outcome.error is not None:
            is_good = False
            typer.echo(f"{name}: error: {outcome.error}")
        else:
            typer.echo(f"{name}: {'matches' if outcome.match else 'does not match'}")
        for path, value in _values(program.reads, device):
            typer.echo(f"  {path} = {value}")
    return is_good


def _values(read_paths: frozenset[reads.Path] | None, device: cel.Device) -> Iterator[tuple[str, str]]:
    """Yield each path that an expression may read, in CEL's notation, with its value on a device."""
    paths = (
        sorted(read_paths)
        if read_paths is not None
        else [("allowMultipleAllocations",), ("attributes",), ("capacity",), ("driver",)]
    )
    for path in paths:
        match path:
            case ("driver",):
                yield "device.driver", quotation.quote(device.driver)
            case ("allowMultipleAllocations",):
                yield "device.allowMultipleAllocations", _literal(device.allow_multiple_allocations)
            case (field, *rest):
                yield from _entries(field, rest, device)


def _entries(field: str, rest: list[str], device: cel.Device) -> Iterator[tuple[str, str]]:
    table = device.attributes if field == "attributes" else device.capacity
    domains = rest[:1] or sorted(table)
    for domain in domains:
        entries = table.get(domain, {})
        for name in rest[1:] or sorted(entries):
            value = _literal(entries[name]) if name in entries else "(not set)"
            yield f"device.{field}[{quotation.quote(domain)}].{name}", value


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quotation.quote(value)
    return f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else str(value)
