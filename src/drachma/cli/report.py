"""``drachma report``: the utilisation and the fragmentation of a cluster."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.scheduler.snapshot import Snapshot


class Subject(enum.StrEnum):
    """Subject of a report."""

    UTILISATION = "utilisation"
    FRAGMENTATION = "fragmentation"


class Form(enum.StrEnum):
    """Form of a report."""

    TABLE = "table"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


def report(
    subject: Annotated[
        str,
        typer.Argument(
            help="utilisation: the share of every node, device, counter and capacity in use, and the claims that use "
            "it; fragmentation: the number of claims of every size that would fit, and that would fit if the free "
            "capacity of all nodes were on one node.",
            autocompletion=lambda: list(Subject),
        ),
    ] = Subject.UTILISATION,
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of the report.")] = Form.TABLE,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Report the utilisation or the fragmentation of a cluster."""
    from drachma.cli import clusters
    from drachma.scheduler import Settings
    from drachma.simulate import Simulation

    parsed_subject = _parse_subject(subject)
    enabled = gates.Gates.parse(feature_gates)
    cluster = clusters.read(file, kubeconfig, context=context, enabled=enabled)
    snapshot = Simulation(cluster.state, settings=Settings(gates=enabled)).snapshot
    match parsed_subject:
        case Subject.UTILISATION:
            typer.echo(_utilisation(snapshot, output))
        case Subject.FRAGMENTATION:
            typer.echo(_fragmentation(snapshot, output))


def _parse_subject(text: str) -> Subject:
    """Return the subject of a name, in British or US spelling. Raises errors.InvalidValueError for another name."""
    from drachma.cli import nearest

    try:
        return Subject(text.lower().replace("utilization", "utilisation"))
    except ValueError:
        raise errors.InvalidValueError(f"report {text!r}: does not exist{nearest.suggest(text, Subject)}") from None


def _utilisation(snapshot: Snapshot, output: Form) -> str:
    from drachma.simulate.reports import pictures, utilisation

    measurement = utilisation.measure(snapshot)
    match output:
        case Form.TABLE:
            return f"{_table(utilisation.rows(measurement))}\n{utilisation.summary(measurement)}"
        case Form.JSON:
            return _json(utilisation.to_document(measurement))
        case Form.SVG:
            return pictures.draw_utilisation(measurement).rstrip("\n")
        case Form.HTML:
            return _page("Utilisation", pictures.draw_utilisation(measurement), utilisation.rows(measurement))


def _fragmentation(snapshot: Snapshot, output: Form) -> str:
    from drachma.simulate.reports import fragmentation, pictures

    measurement = fragmentation.measure(snapshot)
    match output:
        case Form.TABLE:
            return _table(fragmentation.rows(measurement))
        case Form.JSON:
            return _json(fragmentation.to_document(measurement))
        case Form.SVG:
            return pictures.draw_fragmentation(measurement).rstrip("\n")
        case Form.HTML:
            return _page("Fragmentation", pictures.draw_fragmentation(measurement), fragmentation.rows(measurement))


def _page(title: str, picture: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return one HTML page with a picture and, folded below it, the table."""
    import html

    table = html.escape(_table(rows))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        f"<body>\n{picture}<details><summary>All numbers</summary><pre>{table}</pre></details>\n</body></html>"
    )


def _json(document: dict[str, Any]) -> str:
    from drachma.api import manifest

    return manifest.write_json([document]).rstrip("\n")


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)
