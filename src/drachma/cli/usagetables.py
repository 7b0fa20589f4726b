"""Tables of resource usage from the metrics API, for ``drachma top``."""

import pathlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import typer

from drachma.api import meta, node
from drachma.api.struct import ABSENT_MAP, Struct
from drachma.client import http, protocol, target
from drachma.process import eventloop
from drachma.runtime import clock
from drachma.values import quantity

_MEBI: Final = 1024 * 1024

_Rows: TypeAlias = list[tuple[str, ...]]


class _ContainerMetrics(Struct, frozen=True, kw_only=True):
    usage: Mapping[str, quantity.Quantity] = ABSENT_MAP


class _NodeMetrics(meta.Object, frozen=True, kw_only=True):
    usage: Mapping[str, quantity.Quantity] = ABSENT_MAP


class _PodMetrics(meta.Object, frozen=True, kw_only=True):
    containers: tuple[_ContainerMetrics, ...] = ()


def _target(plural: str, kind: str, model: type[Any], *, namespaced: bool) -> target.Target[Any]:
    metadata = target.metadata_of("metrics.k8s.io", "v1beta1", plural=plural, kind=kind, namespaced=namespaced)
    return target.view_of(metadata, model)


_NODES: Final = _target("nodes", "NodeMetrics", _NodeMetrics, namespaced=False)
_PODS: Final = _target("pods", "PodMetrics", _PodMetrics, namespaced=True)


def print_nodes(kubeconfig: pathlib.Path | None, context: str) -> None:
    """Print the usage of each node, and its share of the node's allocatable resources."""

    async def rows(client: http.HttpClient) -> _Rows:
        allocatable = {each.metadata.name: each.status.allocatable for each in (await client.list(node.Node)).items}
        metrics = (await client.list(_NODES)).items
        return [_node_row(each, allocatable.get(each.metadata.name) or {}) for each in metrics]

    _print(("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"), rows, kubeconfig, context)


def print_pods(kubeconfig: pathlib.Path | None, context: str, *, namespace: str, selector: str) -> None:
    """Print the usage of each pod that a label selector matches, in one namespace or in all."""

    async def rows(client: http.HttpClient) -> _Rows:
        metrics = await client.list(_PODS, protocol.Selection(namespace=namespace, labels=selector))
        return [_pod_row(each) for each in metrics.items]

    _print(("NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)"), rows, kubeconfig, context)


def _node_row(metrics: _NodeMetrics, allocatable: Mapping[str, quantity.Quantity]) -> tuple[str, ...]:
    cells = [metrics.metadata.name]
    for name, as_text in (("cpu", _cores), ("memory", _size)):
        usage, total = metrics.usage.get(name), allocatable.get(name)
        cells.append(as_text(usage.nanos if usage is not None else 0))
        cells.append(f"{100 * usage.nanos // total.nanos}%" if usage and total else "<unknown>")
    return tuple(cells)


def _pod_row(metrics: _PodMetrics) -> tuple[str, ...]:
    def total(name: str) -> int:
        return sum(each.usage[name].nanos for each in metrics.containers if name in each.usage)

    return metrics.metadata.namespace, metrics.metadata.name, _cores(total("cpu")), _size(total("memory"))


def _cores(nanos: int) -> str:
    return f"{nanos // 10**6}m"


def _size(nanos: int) -> str:
    return f"{nanos // 10**9 // _MEBI}Mi"


def _print(
    head: tuple[str, ...],
    rows: Callable[[http.HttpClient], Awaitable[_Rows]],
    kubeconfig: pathlib.Path | None,
    context: str,
) -> None:
    access = http.find_access(kubeconfig, context=context)

    async def read() -> _Rows:
        async with http.HttpClient(access, clock=clock.SystemClock()) as client:
            return [head, *await rows(client)]

    with eventloop.runner() as runner:
        table = runner.run(read())
    widths = [max(len(row[column]) for row in table) + 3 for column in range(len(head))]
    for row in table:
        typer.echo("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
