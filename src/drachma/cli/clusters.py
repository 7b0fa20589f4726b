"""What commands that simulate share: where their cluster comes from, and how they show what came out."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from drachma import errors
from drachma.api import gates, manifest
from drachma.cli import options
from drachma.client import http
from drachma.offline import clusterfiles
from drachma.runtime import clock
from drachma.simulate import ClusterState, NodeGroup, livecluster, liveworkloads


def read(
    files: list[str] | None,
    kubeconfig: pathlib.Path | None,
    *,
    context: str = "",
    more: list[str] | None = None,
    enabled: gates.Gates = gates.ALL,
    expects_pods: bool = False,
) -> clusterfiles.ClusterFiles:
    """The cluster of files, or of a server where there are none; ``more`` are files beside it.

    Where it ``expects_pods``, pods that would come count as well, such as those of suspended Jobs.

    Ends the command with exit code 2, and a line for every problem, where something cannot be read.
    """
    refuse_both(files, kubeconfig)
    cluster = clusterfiles.read([*(files or ()), *(more or ())], enabled=enabled, expects_pods=expects_pods)
    tell(cluster.problems)
    if files:
        return cluster
    if not expects_pods:
        return cluster._replace(state=asyncio.run(live(kubeconfig, context)))
    state, awaited = asyncio.run(live_with_workloads(kubeconfig, context))
    whole = clusterfiles.expect(state, awaited, enabled=enabled)
    tell(whole.problems)
    return cluster._replace(state=whole.state)


def groups(files: list[str]) -> tuple[NodeGroup, ...]:
    """The node groups of files, at least one; ends the command where something cannot be read."""
    found = clusterfiles.read(files)
    tell(found.problems)
    if not found.groups:
        raise errors.DecodeError(f"--node-groups {', '.join(files)}: there is no NodeGroup")
    return found.groups


def refuse_both(files: list[str] | None, kubeconfig: pathlib.Path | None) -> None:
    """A cluster is read from one of them."""
    if files and kubeconfig:
        raise typer.BadParameter("goes without -f: the cluster is read from one of them", param_hint="--kubeconfig")


def tell(problems: Sequence[str]) -> None:
    """Says what is wrong with files, a line each, and ends the command with exit code 2 if something is."""
    for problem in problems:
        typer.echo(f"drachma: {problem}", err=True)
    if problems:
        raise typer.Exit(2)


async def live(kubeconfig: pathlib.Path | None, context: str) -> ClusterState:
    """The cluster of a server."""
    async with _connected(kubeconfig, context) as client:
        return await livecluster.read(client)


async def live_with_workloads(
    kubeconfig: pathlib.Path | None, context: str
) -> tuple[ClusterState, list[dict[str, Any]]]:
    """The same, and the documents of what pods are still to come of."""
    async with _connected(kubeconfig, context) as client:
        return await livecluster.read(client), await liveworkloads.read(client)


def _connected(kubeconfig: pathlib.Path | None, context: str) -> http.HttpClient:
    access = http.find_access(kubeconfig, context=context)
    return http.HttpClient(access, time=clock.SystemClock(), manager="drachma")


def maxima(texts: list[str], groups: set[str]) -> dict[str, int]:
    """What ``--max GROUP=N`` says, again and again; DecodeError for what it cannot mean."""
    limits: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            raise errors.DecodeError(f"--max {text}: expected GROUP=N")
        if name not in groups:
            raise errors.DecodeError(f"--max {text}: there is no node group {name}, but {', '.join(sorted(groups))}")
        limits[name] = int(number)
    return limits


def write(document: dict[str, Any], lines: Iterable[str], output: options.Format | None) -> None:
    """Shows an answer as a document, or else as lines."""
    if output is None:
        for line in lines:
            typer.echo(line)
        return
    as_text = manifest.write_json if output is options.Format.JSON else manifest.write_yaml
    typer.echo(as_text([document]), nl=False)
