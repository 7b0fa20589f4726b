"""``drachma down``: stop a cluster of this machine, and delete it if you like."""

from __future__ import annotations

import pathlib
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.cli import options

_SECONDS: Final = 60.0


def down(
    name: options.ClusterName = "drachma",
    data: options.ClusterData = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Also delete the cluster's data and its context in the kubeconfig.")
    ] = False,
) -> None:
    """Stop a cluster that drachma up started on this machine.

    Its objects and its context stay, so drachma up continues where it stopped. The context that was current before is
    current again. Clusters that keep their objects in memory lose them, and their context is removed.

    Exit code 1: there is no such cluster.
    """
    from drachma.process import kubeconfigentry, localcluster

    folder = localcluster.folder(name, data)
    record = localcluster.read(folder)
    if record is None:
        raise errors.UnreachableError(f"there is no cluster {name} in {folder}; drachma status lists the clusters")
    if delete and data is not None:
        raise errors.InvalidValueError(f"--delete: does not go with --data: delete {data} yourself")
    if record.is_running:
        if not localcluster.stop(record, seconds=_SECONDS):
            raise errors.UnreachableError(f"cluster {name}: process {record.process} still runs after {_SECONDS:g} s")
        typer.echo(f"cluster {record.name} is stopped")
    else:
        typer.echo(f"cluster {record.name} was not running")
    path, previous = pathlib.Path(record.kubeconfig), record.previous_context
    if record.context and (delete or not record.data):
        if kubeconfigentry.remove(path, record.context, previous=previous):
            typer.echo(f"context {record.context} is removed from {path}")
    elif record.context and kubeconfigentry.leave(path, record.context, previous=previous) and previous:
        typer.echo(f"context {previous} is current again")
    if delete or not record.data:
        localcluster.delete(folder)
        if delete:
            typer.echo(f"{folder} is deleted")
