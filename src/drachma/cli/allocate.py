"""``drachma allocate``: which devices claims would get and on which node, offline; and why they do not."""

from __future__ import annotations

import enum
import json
import sys
from typing import Annotated, Any

import typer

from drachma import errors
from drachma.api import gates, manifest
from drachma.cli import attempt as attempts
from drachma.cli import batch as batches
from drachma.cli import cluster as clusters


class Output(enum.StrEnum):
    """How claims and explanations are written."""

    YAML = "yaml"
    JSON = "json"


def allocate(
    file: Annotated[
        list[str] | None, typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="Try this node only, not all in the order of their names.")] = None,
    claim: Annotated[
        list[str] | None, typer.Option(help="Try this claim (NAMESPACE/NAME) only, not all without an allocation.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain why claims do not fit.")] = False,
    output: Annotated[
        Output | None, typer.Option("-o", "--output", help="The format; else claims are YAML and explanations text.")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(help="Features to switch, such as DRAConsumableCapacity=false,DRAAdminAccess=false.")
    ] = "",
    batch: Annotated[bool, typer.Option("--batch", help="Answer cases from standard input, a JSON line each.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="With --batch: take the time, and add allocUs.")] = False,
) -> None:
    """Find devices for claims as kube-scheduler would, from manifests or from a dump of a cluster.

    Reads Nodes, ResourceSlices, DeviceClasses, ResourceClaims, DeviceTaintRules and Namespaces, and passes over
    everything else. Claims with an allocation count as allocated. The others are tried one after the other, and what
    one gets counts for the next. Those that fit are written with their allocation. Exit code 1: something does not
    fit, or cannot be read.
    """
    if batch:
        if file or node or claim or explain or output or feature_gates:
            raise errors.DecodeError("--batch: goes with --timing only; everything else is in its lines")
        _answer_batch(timing=timing)
        return
    if timing:
        raise errors.DecodeError("--timing: goes with --batch only")
    if not file:
        raise errors.DecodeError("-f: required, unless there is --batch")
    cluster = _read(file)
    runs = attempts.Attempts(cluster, gates.Gates.parse(feature_gates), node=node)
    made = [runs.run(name, explain=explain) for name in _wanted(cluster, claim or [])]
    _write(made, output)
    for entry in made:
        typer.echo(f"drachma: {entry.message}", err=True)
    if not all(entry.document for entry in made):
        raise typer.Exit(1)


def _read(paths: list[str]) -> clusters.Cluster:
    cluster = clusters.Cluster.read(paths)
    for warning in cluster.warnings:
        typer.echo(f"drachma: warning: {warning}", err=True)
    for problem in cluster.problems:
        typer.echo(f"drachma: {problem}", err=True)
    if cluster.problems:
        raise typer.Exit(1)
    return cluster


def _wanted(cluster: clusters.Cluster, names: list[str]) -> list[str]:
    """The claims to be tried; DecodeError for a name of none, or of one that is allocated."""
    if not names:
        found = [name for name, claim in cluster.claims.items() if claim.defaulted.status.allocation is None]
        if not found:
            typer.echo(f"drachma: nothing to do: {len(cluster.claims)} claims, none without an allocation", err=True)
        return found
    qualified = [name if "/" in name else f"default/{name}" for name in names]
    for name in qualified:
        if name not in cluster.claims:
            known = ", ".join(sorted(cluster.claims)[:8]) or "none at all"
            raise errors.DecodeError(f"--claim {name}: there is no such claim, but {known}")
        allocation = cluster.claims[name].defaulted.status.allocation
        if allocation is not None:
            devices = ", ".join(f"{entry.driver}/{entry.pool}/{entry.device}" for entry in allocation.devices.results)
            raise errors.DecodeError(f"--claim {name}: is allocated already: {devices or 'without devices'}")
    return list(dict.fromkeys(qualified))


def _write(made: list[attempts.Attempt], output: Output | None) -> None:
    documents: list[Any] = [entry.document for entry in made if entry.document]
    explanations = [explained for entry in made for explained in entry.explanations]
    if output is not None:
        documents += [explained.document for explained in explanations]
    write = manifest.write_json if output is Output.JSON else manifest.write_yaml
    if documents:
        typer.echo(write(documents), nl=False)
    if output is None:
        for explained in explanations:
            typer.echo(explained.text, nl=False)


def _answer_batch(*, timing: bool) -> None:
    is_good = True
    for answer in batches.answers(sys.stdin.buffer, timing=timing):
        sys.stdout.write(json.dumps(answer.document, ensure_ascii=False) + "\n")
        # Whoever feeds lines one by one waits for each answer.
        sys.stdout.flush()
        if answer.problem:
            typer.echo(f"drachma: {answer.problem}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)
