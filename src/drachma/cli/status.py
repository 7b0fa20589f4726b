"""``drachma status``: the clusters of this machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from drachma.cli import options


def status(
    name: Annotated[str | None, typer.Option("--name", help="Show only this cluster.")] = None,
    data: options.ClusterData = None,
    output: options.Output = None,
) -> None:
    """Show the clusters that drachma up started on this machine, running or stopped.

    Exit code 1: no cluster is running, or not the one that --name or --data names.
    """
    from drachma.cli import clusters, clusterstart
    from drachma.cli.inventory import table
    from drachma.process import localcluster

    if name is not None or data is not None:
        record = localcluster.read(localcluster.folder(name or localcluster.DEFAULT_NAME, data))
        records = [record] if record is not None else []
    else:
        records = [record for _, record in localcluster.every()]
    rows = [
        {
            "name": each.name,
            "state": "running" if each.is_running else "stopped",
            "server": each.server,
            "context": each.context,
            "kubeconfig": each.kubeconfig,
            "nodes": each.nodes,
            "profile": each.profile,
            "devices": dict(each.devices),
            "data": each.data,
            **({"process": each.process} if each.is_running else {}),
        }
        for each in records
    ]
    if output is not None:
        clusters.write({"clusters": rows}, (), output)
    elif rows:
        for line in table.align([("NAME", "STATE", "SERVER", "CONTEXT", "NODES", "DATA"), *map(_cells, rows)]):
            typer.echo(line)
    else:
        typer.echo(f"no cluster in {clusterstart.shorten(str(localcluster.user_root()))}; drachma up starts one")
    if not any(each.is_running for each in records):
        raise typer.Exit(1)


def _cells(row: dict[str, Any]) -> list[str]:
    from drachma.cli import clusterstart

    data = clusterstart.shorten(row["data"]) if row["data"] else "<memory>"
    return [row["name"], row["state"], row["server"], row["context"] or "<none>", str(row["nodes"]), data]
