"""``drachma report``: how much of a cluster is in use, and what of the rest could be had in one piece."""

from __future__ import annotations

import enum
import pathlib
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import typer

from drachma.api import gates, manifest
from drachma.cli import clusters, options
from drachma.scheduler import Settings
from drachma.scheduler.snapshot import Snapshot
from drachma.simulate import Simulation
from drachma.simulate.reports import fragmentation as fragmentations
from drachma.simulate.reports import pictures
from drachma.simulate.reports import utilisation as utilisations

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


class Form(enum.StrEnum):
    """As what a report is shown."""

    TABLE = "table"
    JSON = "json"
    SVG = "svg"


Files: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", help="A file, a folder, or - for standard input, in place of a server."),
]
Output: TypeAlias = Annotated[Form, typer.Option("-o", "--output", help="A table, a document, or a picture.")]


@app.callback()
def _group() -> None:
    """Say how much of a cluster is in use, and what of the rest could be had in one piece."""


@app.command()
def utilisation(
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Output = Form.TABLE,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Show what of every node, device, counter and capacity is in use, and by which claims."""
    measured = utilisations.measure(_snapshot(file, kubeconfig, context, feature_gates))
    match output:
        case Form.TABLE:
            _print(utilisations.rows(measured))
            typer.echo(utilisations.summary(measured))
        case Form.JSON:
            typer.echo(manifest.write_json([utilisations.to_document(measured)]), nl=False)
        case Form.SVG:
            typer.echo(pictures.of_utilisation(measured), nl=False)


@app.command()
def fragmentation(
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Output = Form.TABLE,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Show how many claims of every size would fit, and how many if what is free were in one piece."""
    measured = fragmentations.measure(_snapshot(file, kubeconfig, context, feature_gates))
    match output:
        case Form.TABLE:
            _print(fragmentations.rows(measured))
        case Form.JSON:
            typer.echo(manifest.write_json([fragmentations.to_document(measured)]), nl=False)
        case Form.SVG:
            typer.echo(pictures.of_fragmentation(measured), nl=False)


def _snapshot(file: list[str] | None, kubeconfig: pathlib.Path | None, context: str, feature_gates: str) -> Snapshot:
    enabled = gates.Gates.parse(feature_gates)
    read = clusters.read(file, kubeconfig, context=context, enabled=enabled)
    return Simulation(read.state, chosen=Settings(gates=enabled)).snapshot


def _print(rows: Iterable[tuple[str, ...]]) -> None:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        typer.echo("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
