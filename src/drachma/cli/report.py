"""``drachma report``: how much of a cluster is in use, and what of the rest could be had in one piece."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final

import typer

from drachma.api import gates, manifest
from drachma.cli import clusters, options
from drachma.scheduler import Settings
from drachma.scheduler.snapshot import Snapshot
from drachma.simulate import Simulation
from drachma.simulate.reports import fragmentation, pictures, utilisation


class Subject(enum.StrEnum):
    """What a report is about."""

    UTILISATION = "utilisation"
    FRAGMENTATION = "fragmentation"


class Form(enum.StrEnum):
    """As what a report is shown."""

    TABLE = "table"
    JSON = "json"
    SVG = "svg"


def report(
    subject: Annotated[
        Subject,
        typer.Argument(
            help="utilisation: what of every node, device, counter and capacity is in use, and by which claims; "
            "fragmentation: how many claims of every size would fit, and how many if what is free were in one piece."
        ),
    ],
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", help="A file, a folder, or - for standard input, in place of a server."),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Annotated[Form, typer.Option("-o", "--output", help="A table, a document, or a picture.")] = Form.TABLE,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Say how much of a cluster is in use, and what of the rest could be had in one piece."""
    enabled = gates.Gates.parse(feature_gates)
    read = clusters.read(file, kubeconfig, context=context, enabled=enabled)
    snapshot = Simulation(read.state, chosen=Settings(gates=enabled)).snapshot
    typer.echo(_SHOWN[subject](snapshot, output))


def _utilisation(snapshot: Snapshot, output: Form) -> str:
    measured = utilisation.measure(snapshot)
    match output:
        case Form.TABLE:
            return f"{_table(utilisation.rows(measured))}\n{utilisation.summary(measured)}"
        case Form.JSON:
            return _json(utilisation.to_document(measured))
        case Form.SVG:
            return pictures.of_utilisation(measured).rstrip("\n")


def _fragmentation(snapshot: Snapshot, output: Form) -> str:
    measured = fragmentation.measure(snapshot)
    match output:
        case Form.TABLE:
            return _table(fragmentation.rows(measured))
        case Form.JSON:
            return _json(fragmentation.to_document(measured))
        case Form.SVG:
            return pictures.of_fragmentation(measured).rstrip("\n")


_SHOWN: Final[Mapping[Subject, Callable[[Snapshot, Form], str]]] = {
    Subject.UTILISATION: _utilisation,
    Subject.FRAGMENTATION: _fragmentation,
}


def _json(document: dict[str, Any]) -> str:
    return manifest.write_json([document]).rstrip("\n")


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)
