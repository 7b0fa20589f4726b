"""``drachma cel``: check selector expressions and try them on devices."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import typer

from drachma import errors
from drachma.cli import options

app = typer.Typer(
    help="Check selector expressions and try them on devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_Stored: TypeAlias = Annotated[
    bool, typer.Option("--stored", help="Compile it as a stored expression, not as a new one.")
]


@app.command()
def check(
    expression: Annotated[str, typer.Argument(help="A CEL expression over 'device'.")],
    feature_gates: options.FeatureGates = "",
    stored: _Stored = False,
) -> None:
    """Show the type and the estimated cost of an expression, or its compilation error."""
    from drachma.cel import program as programs
    from drachma.cli import celmatches

    program = celmatches.compile_expression(expression, feature_gates, stored=stored)
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
    feature_gates: options.FeatureGates = "",
    stored: _Stored = False,
) -> None:
    """Show the devices that an expression matches, and the values that decided it."""
    from drachma.cli import batch as batches
    from drachma.cli import celmatches
    from drachma.offline import celcase

    if batch:
        if expression is not None or device is not None or slices is not None:
            raise typer.BadParameter("--batch reads everything from standard input")
        batches.write(celcase.answers(sys.stdin.buffer))
        return
    if expression is None:
        raise typer.BadParameter("an expression is needed")
    if (device is None) == (slices is None):
        raise typer.BadParameter("either --device or --slices is needed")
    program = celmatches.compile_expression(expression, feature_gates, stored=stored)
    devices = celmatches.read_device(device) if device is not None else celmatches.read_slices(slices or "")
    if not celmatches.print_matches(program, devices):
        raise typer.Exit(1)
