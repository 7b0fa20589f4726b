"""Clusters that commands simulate on: read from files or from an API server; and the output of their answers."""

from __future__ import annotations

import asyncio
import datetime as dt
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from drachma import errors
from drachma.api import gates, manifest
from drachma.cli import options
from drachma.client import connect
from drachma.offline import clusterfiles

if TYPE_CHECKING:
    from drachma.api import meta, resourcequota
    from drachma.simulate import ClusterState, NodeGroup


def read(
    files: list[str] | None,
    kubeconfig: pathlib.Path | None,
    *,
    context: str = "",
    more: list[str] | None = None,
    enabled: gates.Gates = gates.ALL,
    expects_pods: bool = False,
    with_queues: bool = False,
) -> clusterfiles.ClusterFiles:
    """Return the cluster in files, or without files the cluster of an API server.

    Objects in the files ``more`` are added to it. With ``expects_pods``, future pods count as well, such as those of
    suspended Jobs; ``with_queues``, objects of queueing in the files. If something cannot be read, print a line for
    every problem and exit with code 2.
    """
    require_one_source(files, kubeconfig)
    cluster = clusterfiles.read(
        [*(files or ()), *(more or ())], enabled=enabled, expects_pods=expects_pods, with_queues=with_queues
    )
    exit_on_problems(cluster.problems)
    if files:
        return cluster
    if not expects_pods:
        state, quotas = asyncio.run(_read_live(kubeconfig, context))
        return cluster._replace(state=state, quotas=quotas)
    state, workloads, queueing = asyncio.run(_read_live_with_queues(kubeconfig, context))
    holds = clusterfiles.find_holds(queueing, dt.datetime.now(dt.UTC)) if queueing is not None else None
    expected_workloads = clusterfiles.expect(state, workloads, holds=holds, enabled=enabled)
    exit_on_problems(expected_workloads.problems)
    return cluster._replace(state=expected_workloads.state, held=expected_workloads.held)


def groups(files: list[str]) -> tuple[NodeGroup, ...]:
    """Return the node groups in files. Raises errors.DecodeError if there is none."""
    cluster = clusterfiles.read(files)
    exit_on_problems(cluster.problems)
    if not cluster.groups:
        raise errors.DecodeError(f"--node-groups {', '.join(files)}: there is no NodeGroup")
    return cluster.groups


def read_queueing(
    files: list[str] | None, kubeconfig: pathlib.Path | None, *, context: str = ""
) -> Sequence[meta.Object]:
    """Return the objects that queueing depends on, from files or from an API server.

    If something cannot be read, print a line for every problem and exit with code 2.

    Raises:
        errors.ObjectNotFoundError: the API server has no queues.
    """
    from drachma.offline import queueingfiles

    require_one_source(files, kubeconfig)
    if files:
        queueing = queueingfiles.read(files)
        exit_on_problems(queueing.problems)
        return queueing.objects
    return asyncio.run(read_live_queueing(kubeconfig, context))


def read_queueing_if_served(
    files: list[str] | None, kubeconfig: pathlib.Path | None, *, context: str = ""
) -> Sequence[meta.Object]:
    """Return the objects that queueing depends on, like read_queueing(); none if the API server has no queues."""
    try:
        return read_queueing(files, kubeconfig, context=context)
    except errors.ObjectNotFoundError:
        return ()


def require_one_source(files: list[str] | None, kubeconfig: pathlib.Path | None) -> None:
    """Raise typer.BadParameter if a command got both files and a kubeconfig."""
    if files and kubeconfig:
        raise typer.BadParameter("goes without -f: the cluster is read from one of them", param_hint="--kubeconfig")


def exit_on_problems(problems: Sequence[str]) -> None:
    """Print the problems of files, one line each. If there are any, exit with code 2."""
    for problem in problems:
        typer.echo(f"drachma: {problem}", err=True)
    if problems:
        raise typer.Exit(2)


async def _read_live(
    kubeconfig: pathlib.Path | None, context: str
) -> tuple[ClusterState, tuple[resourcequota.ResourceQuota, ...]]:
    from drachma.simulate import livecluster

    async with connect(kubeconfig, context=context) as client:
        state = await livecluster.read(client)
        try:
            return state, await livecluster.read_quotas(client)
        except errors.ForbiddenError as error:
            # Quotas only matter for claims that are not created yet.
            typer.echo(f"drachma: quotas are not considered: {error}", err=True)
            return state, ()


async def read_live_with_workloads(
    kubeconfig: pathlib.Path | None, context: str
) -> tuple[ClusterState, list[dict[str, Any]]]:
    """Return the cluster of an API server, and the documents of workloads that will create pods."""
    from drachma.simulate import livecluster

    async with connect(kubeconfig, context=context) as client:
        return await livecluster.read(client), await livecluster.read_workloads(client)


async def _read_live_with_queues(
    kubeconfig: pathlib.Path | None, context: str
) -> tuple[ClusterState, list[dict[str, Any]], list[meta.Object] | None]:
    """Return the cluster of an API server, its future workloads, and the objects of its queues, None without queues."""
    from drachma.simulate import livecluster

    async with connect(kubeconfig, context=context) as client:
        state, workloads = await livecluster.read(client), await livecluster.read_workloads(client)
        try:
            return state, workloads, await livecluster.read_queueing(client)
        except errors.ObjectNotFoundError:
            return state, workloads, None


async def read_live_queueing(kubeconfig: pathlib.Path | None, context: str) -> list[meta.Object]:
    """Return the objects that queueing depends on, from an API server."""
    from drachma.simulate import livecluster

    async with connect(kubeconfig, context=context) as client:
        return await livecluster.read_queueing(client)


def counts(texts: list[str], groups: set[str], *, option: str) -> dict[str, int]:
    """Return the numbers of an option ``GROUP=N``, by node group. Raises errors.DecodeError for other texts."""
    numbers: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            raise errors.DecodeError(f"{option} {text}: expected GROUP=N")
        if name not in groups:
            known = f", but {', '.join(sorted(groups))}" if groups else ""
            raise errors.DecodeError(f"{option} {text}: there is no node group {name}{known}")
        numbers[name] = int(number)
    return numbers


def write(document: dict[str, Any], lines: Iterable[str], output: options.Format | None) -> None:
    """Print an answer as a document in the output format, or without a format as lines."""
    if output is None:
        for line in lines:
            typer.echo(line)
        return
    as_text = manifest.write_json if output is options.Format.JSON else manifest.write_yaml
    typer.echo(as_text([document]), nl=False)
