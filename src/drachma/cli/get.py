"""``drachma get``: devices, claims, nodes, pods, queues and workloads of a cluster, and their relations."""

import asyncio
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.cli import options

_OPTIONS: Final = {
    "node": "--node",
    "driver": "--driver",
    "pool": "--pool",
    "device_class": "--class",
    "queue": "--queue",
}
"""Option that sets a field of a filter."""


_TABLES: Final = {
    "devices": ("device", "dev"),
    "claims": ("claim", "resourceclaims", "resourceclaim"),
    "drivers": ("driver",),
    "pools": ("pool",),
    "nodes": ("node", "no"),
    "pods": ("pod", "po"),
    "queues": ("queue", "clusterqueues", "clusterqueue", "cq", "localqueues", "localqueue", "lq"),
    "workloads": ("workload", "wl"),
}
"""Tables, with the names that kubectl users may type."""


def _table_name(text: str) -> str:
    """Return the name of the table that a user means. Raises errors.InvalidValueError for an unknown one."""
    from drachma.cli import nearest

    by_alias = {alias: name for name, aliases in _TABLES.items() for alias in (name, *aliases)}
    if text.lower() not in by_alias:
        is_alias = nearest.is_near(text.lower(), by_alias) and not nearest.is_near(text.lower(), _TABLES)
        hint = nearest.suggest(text.lower(), by_alias if is_alias else _TABLES)
        raise errors.InvalidValueError(f"table {text!r}: does not exist{hint}")
    return by_alias[text.lower()]


def get(
    table: Annotated[
        str,
        typer.Argument(
            help="devices, drivers, pools, claims, nodes, pods, queues or workloads; also singular or short.",
            autocompletion=lambda: list(_TABLES),
        ),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(help="Show only rows of these names.", metavar="[NAME]...")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            help="Namespace of claims, pods, local queues and workloads; the kubeconfig's by default.",
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Show all namespaces.")] = False,
    selector: Annotated[str, typer.Option("-l", "--selector", help="Label selector, such as app=web,tier!=db.")] = "",
    node_name: Annotated[str, typer.Option("--node", help="Show only rows of this node.")] = "",
    driver: Annotated[str, typer.Option(help="Show only rows with devices of this driver.")] = "",
    pool: Annotated[str, typer.Option(help="Show only rows with devices of this pool.")] = "",
    device_class: Annotated[str, typer.Option("--class", help="Show only rows with this device class.")] = "",
    queue: Annotated[str, typer.Option(help="Show only this local queue or cluster queue, and its workloads.")] = "",
    output: Annotated[
        options.TableFormat, typer.Option("-o", "--output", help="A table, a wide table, or documents.")
    ] = options.TableFormat.TABLE,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Watch, and print rows that change.")] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show devices, drivers, claims, pools, nodes, pods, queues or workloads.

    Works on any Kubernetes API server that a kubeconfig names, and on a running drachma up.

    Exit code 2: nothing has one of the names.
    """
    from drachma.cli.inventory import table as inventory
    from drachma.cli.inventory import view
    from drachma.client import http

    if watch and output in (options.TableFormat.JSON, options.TableFormat.YAML):
        raise errors.InvalidValueError(f"--watch: goes with tables, not with -o {output}")
    what = _table_name(table)
    table_kind, fields = view.find_table(what)
    filter_ = inventory.Filter(node_name, driver, pool, device_class, queue)
    for field, value in filter_._asdict().items():
        if value and field not in table_kind.filters:
            raise errors.InvalidValueError(f"{_OPTIONS[field]} {value}: does not go with {what}")
    access = http.find_access(kubeconfig, context=context)
    shown_namespace = "" if all_namespaces else namespace if namespace is not None else access.namespace or "default"
    selected = view.View(
        what, table_kind, filter_, fields=fields, namespace=shown_namespace, selector=selector, names=names or ()
    )
    try:
        asyncio.run(view.run(access, selected, output, is_watch=watch))
    except KeyboardInterrupt:
        # The user has ended the watch.
        return
