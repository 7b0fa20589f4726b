"""``drachma top``: what nodes and pods use now, as their nodes say."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import typer

from drachma.api import meta, node
from drachma.api.struct import ABSENT_MAP, Struct
from drachma.cli import options
from drachma.client import http, protocol, target
from drachma.process import eventloop
from drachma.runtime import clock
from drachma.values import quantity

_MEBI: Final = 1024 * 1024

app = typer.Typer(help="Show what nodes and pods use.", pretty_exceptions_enable=False, add_completion=False)


class _ContainerMetrics(Struct, frozen=True, kw_only=True):
    usage: Mapping[str, quantity.Quantity] = ABSENT_MAP


class _NodeMetrics(meta.Object, frozen=True, kw_only=True):
    usage: Mapping[str, quantity.Quantity] = ABSENT_MAP


class _PodMetrics(meta.Object, frozen=True, kw_only=True):
    containers: tuple[_ContainerMetrics, ...] = ()


def _target(plural: str, kind: str, model: type[Any], *, namespaced: bool) -> target.Target[Any]:
    found = target.metadata_of("metrics.k8s.io", "v1beta1", plural=plural, kind=kind, namespaced=namespaced)
    return target.view_of(found, model)


_NODES: Final = _target("nodes", "NodeMetrics", _NodeMetrics, namespaced=False)
_PODS: Final = _target("pods", "PodMetrics", _PodMetrics, namespaced=True)

Rows = Iterable[tuple[str, ...]]


@app.command()
def nodes(kubeconfig: options.Kubeconfig = None, context: options.Context = "") -> None:
    """Show what each node uses, and how much of what it has that is."""

    async def rows(client: http.HttpClient) -> Rows:
        whole = {each.metadata.name: each.status.allocatable for each in (await client.list(node.Node)).items}
        used = (await client.list(_NODES)).items
        return [_node(each, whole.get(each.metadata.name) or {}) for each in used]

    _print(("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"), rows, kubeconfig, context)


@app.command()
def pods(
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Their namespace; all by default.")] = "",
    selector: Annotated[str, typer.Option("-l", "--selector", help="Labels that they have.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show what the containers of each pod use together."""

    async def rows(client: http.HttpClient) -> Rows:
        used = await client.list(_PODS, protocol.Selection(namespace=namespace, labels=selector))
        return [_pod(each) for each in used.items]

    _print(("NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)"), rows, kubeconfig, context)


def _node(used: _NodeMetrics, whole: Mapping[str, quantity.Quantity]) -> tuple[str, ...]:
    shown = [used.metadata.name]
    for name, text in (("cpu", _cores), ("memory", _size)):
        amount, all_of_it = used.usage.get(name), whole.get(name)
        shown.append(text(amount.nanos if amount is not None else 0))
        share = f"{100 * amount.nanos // all_of_it.nanos}%" if amount and all_of_it else "<unknown>"
        shown.append(share)
    return tuple(shown)


def _pod(used: _PodMetrics) -> tuple[str, ...]:
    def total(name: str) -> int:
        return sum(each.usage[name].nanos for each in used.containers if name in each.usage)

    return used.metadata.namespace, used.metadata.name, _cores(total("cpu")), _size(total("memory"))


def _cores(nanos: int) -> str:
    return f"{nanos // 10**6}m"


def _size(nanos: int) -> str:
    return f"{nanos // 10**9 // _MEBI}Mi"


def _print(head: tuple[str, ...], rows: Any, kubeconfig: options.Kubeconfig, context: options.Context) -> None:
    access = http.find_access(kubeconfig, context=context)

    async def read() -> list[tuple[str, ...]]:
        async with http.HttpClient(access, time=clock.SystemClock()) as client:
            return [head, *await rows(client)]

    with eventloop.runner() as runner:
        table = runner.run(read())
    widths = [max(len(row[column]) for row in table) + 3 for column in range(len(head))]
    for row in table:
        typer.echo("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
