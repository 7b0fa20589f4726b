"""``drachma get``: devices, claims, nodes, pods, queues and workloads of a cluster, and how they belong together."""

import asyncio
import datetime as dt
import enum
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import typer

from drachma import errors
from drachma.api import manifest, node, pod, resourceclaim, resourceslice
from drachma.cli import options
from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import table as inventory
from drachma.cli.inventory import tables
from drachma.client import Client, Selection, access, http, target
from drachma.queueing.component import resources
from drachma.runtime import Informers, clock, informer

_PAUSE_SECONDS: Final = 0.2
"""How long changes are gathered before a watch shows them."""

_FIELDS: Final[dict[target.Of[Any], str]] = {
    node.Node: "nodes",
    pod.Pod: "pods",
    resourceclaim.ResourceClaim: "claims",
    resourceslice.ResourceSlice: "slices",
    resources.WORKLOADS: "workloads",
    resources.CLUSTER_QUEUES: "cluster_queues",
    resources.LOCAL_QUEUES: "local_queues",
}
"""Where a cluster has the objects of a kind."""

_OPTIONS: Final = {
    "node": "--node",
    "driver": "--driver",
    "pool": "--pool",
    "device_class": "--class",
    "queue": "--queue",
}
"""The option that sets a field of a filter."""


class What(enum.StrEnum):
    """What is to be shown."""

    DEVICES = "devices"
    CLAIMS = "claims"
    POOLS = "pools"
    NODES = "nodes"
    PODS = "pods"
    QUEUES = "queues"
    WORKLOADS = "workloads"


class Output(enum.StrEnum):
    """How it is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def get(
    what: Annotated[What, typer.Argument(help="What to show.")],
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n", "--namespace", help="Of claims, pods, local queues and workloads; that of the kubeconfig by default."
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Those of all namespaces.")] = False,
    selector: Annotated[str, typer.Option("-l", "--selector", help="By their labels: app=web,tier!=db.")] = "",
    node_name: Annotated[str, typer.Option("--node", help="Only what is on this node.")] = "",
    driver: Annotated[str, typer.Option(help="Only what has to do with devices of this driver.")] = "",
    pool: Annotated[str, typer.Option(help="Only what has to do with devices of this pool.")] = "",
    device_class: Annotated[str, typer.Option("--class", help="Only what has to do with this device class.")] = "",
    queue: Annotated[
        str, typer.Option(help="Only this queue and what is in it; of a namespace, or of the cluster.")
    ] = "",
    output: Annotated[
        Output, typer.Option("-o", "--output", help="A table, a wider one, or documents.")
    ] = Output.TABLE,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on, and show what changes.")] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show devices, claims, pools, nodes, pods, queues or workloads: who has what, what is free, who waits.

    Works on any Kubernetes API server that a kubeconfig names, and on a running drachma up.
    """
    if watch and output in (Output.JSON, Output.YAML):
        raise errors.InvalidValueError(f"--watch: goes with tables, not with -o {output}")
    wanted = inventory.Filter(node_name, driver, pool, device_class, queue)
    for field, value in wanted._asdict().items():
        if value and field not in tables.TABLES[what].filters:
            raise errors.InvalidValueError(f"{_OPTIONS[field]} {value}: does not go with {what}")
    found = http.find_access(kubeconfig, context=context)
    place = "" if all_namespaces else namespace if namespace is not None else found.namespace or "default"
    view = _View(tables.TABLES[what], wanted, namespace=place, selector=selector)
    try:
        asyncio.run(_run(found, view, output, is_watch=watch))
    except KeyboardInterrupt:
        # Who watches has seen enough.
        return


class _View:
    """What is asked for: a table, which of its rows, and the objects that they are made of."""

    def __init__(
        self,
        table: inventory.Table,
        wanted: inventory.Filter,
        *,
        namespace: str,
        selector: str,
    ) -> None:
        self.table: Final = table
        self._wanted: Final = wanted
        self._namespace: Final = namespace
        self._selector: Final = selector
        self._is_placed: Final = any(target.of(kind).namespaced for kind in table.about)

    @property
    def has_namespaces(self) -> bool:
        """Whether rows of several namespaces are shown."""
        return not self._namespace

    def selection(self, kind: target.Of[Any]) -> Selection:
        """Which objects of a kind are needed."""
        # What belongs to something in a namespace is in it too; devices may be anybody's.
        place = self._namespace if self._is_placed and target.of(kind).namespaced else ""
        return Selection(place, self._selector if kind in self.table.about else "")

    def rows(self, objects: dict[target.Of[Any], Iterable[Any]]) -> list[inventory.Row]:
        """The rows as they are now."""
        parts = {_FIELDS[kind]: tuple(known) for kind, known in objects.items()}
        now = dt.datetime.now(dt.UTC)
        return list(self.table.rows(clusters.Cluster(**parts), self._wanted, now))


async def _run(found: access.Access, view: _View, output: Output, *, is_watch: bool) -> None:
    async with http.HttpClient(found, time=clock.SystemClock(), manager="drachma-get") as client:
        if is_watch:
            await _watch(client, view, output)
        else:
            _write(await _list(client, view, output), view, output)


async def _list(client: Client, view: _View, output: Output) -> list[inventory.Row]:
    needs = _needs(view, output)
    listings = await asyncio.gather(*(client.list(kind, view.selection(kind)) for kind in needs))
    return view.rows({kind: listing.items for kind, listing in zip(needs, listings, strict=True)})


async def _watch(client: Client, view: _View, output: Output) -> None:
    """Shows all rows, and from then on those that are new or have changed, until interrupted."""
    changed = asyncio.Event()
    async with Informers(client) as informers:
        known = {kind: informers.of(kind, view.selection(kind)) for kind in _needs(view, output)}
        for each in known.values():
            each.add_handler(
                informer.Handler(
                    added=lambda _: changed.set(), updated=lambda *_: changed.set(), deleted=lambda _: changed.set()
                )
            )
        await informers.wait_synced()
        shown: dict[str, dict[str, str]] = {}
        columns = _columns(view, output)
        widths: list[int] = []
        while True:
            changed.clear()
            rows = view.rows({kind: each.cache for kind, each in known.items()})
            current = {row.key: {name: row.cells[name] for name in columns if name != "AGE"} for row in rows}
            news = [row for row in rows if shown.get(row.key) != current[row.key]]
            widths = _print(news, columns, widths=widths)
            shown = current
            await changed.wait()
            await asyncio.sleep(_PAUSE_SECONDS)


def _needs(view: _View, output: Output) -> tuple[target.Of[Any], ...]:
    return view.table.needs if output is Output.TABLE else view.table.needs + view.table.beside_wide


def _columns(view: _View, output: Output) -> tuple[str, ...]:
    columns = view.table.columns + (view.table.wide if output is Output.WIDE else ())
    return columns if view.has_namespaces else tuple(name for name in columns if name != "NAMESPACE")


def _write(rows: Sequence[inventory.Row], view: _View, output: Output) -> None:
    if output in (Output.JSON, Output.YAML):
        documents = {"items": [row.document for row in rows]}
        write = manifest.write_json if output is Output.JSON else manifest.write_yaml
        typer.echo(write([documents]), nl=False)
    elif rows:
        _print(rows, _columns(view, output), widths=[])
    else:
        typer.echo("drachma: there are none", err=True)


def _print(rows: Sequence[inventory.Row], columns: Sequence[str], *, widths: list[int]) -> list[int]:
    """Prints rows below each other, with names of columns where there are no widths yet; the widths then."""
    if not rows:
        return widths
    lines = [[row.cells[name] for name in columns] for row in rows]
    if not widths:
        lines.insert(0, list(columns))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return widths
