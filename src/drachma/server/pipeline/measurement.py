"""Kinds that are measured: what nodes and pods use, as their nodes said last (:mod:`.nodesummaries`).

A node that does not answer in time is left out, as are pods of which it says nothing.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.api import meta
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import nodelocation
from drachma.server.pipeline.answer import Answer, Elsewhere, Verbatim
from drachma.server.pipeline.services import Services
from drachma.store import record

_SUMMARY: Final = "/stats/summary"
_WINDOW: Final = "10s"
_NODES: Final = "nodes"

Document: TypeAlias = Mapping[str, Any]


async def get(services: Services, call: Call) -> Answer:
    """One node or pod."""
    for item in await _items(services, call, call.target.name):
        return Answer(200, Verbatim(item))
    raise status.not_found(call.target.resource, call.target.name)


async def list_(services: Services, call: Call) -> Answer:
    """All nodes, or all pods of a namespace or of all, whose labels match."""
    resource = call.target.resource
    items = await _items(services, call, "")
    content = {"kind": resource.list_kind, "apiVersion": call.target.api_version, "metadata": {}, "items": items}
    return Answer(200, Verbatim(content))


async def _items(services: Services, call: Call, name: str) -> list[Document]:
    target = call.target
    wanted = options.for_list(call.query, target.resource, version=target.version).labels
    namespace = target.namespace if target.resource.namespaced else None
    stored = [
        each
        for each in services.store.list(target.resource.plural, namespace).records
        if (not name or each.key.name == name) and wanted.matches(each.value["metadata"].get("labels") or {})
    ]
    nodes = {each.key.name if target.resource.plural == _NODES else _node_of(each) for each in stored} - {""}
    summaries = await services.ask_nodes(_places(services, nodes))
    make = _nodes if target.resource.plural == _NODES else _pods
    envelope = {"kind": target.resource.kind, "apiVersion": target.api_version}
    return list(make(stored, summaries, envelope=envelope, now=services.clock()))


def _places(services: Services, nodes: Iterable[str]) -> dict[str, Elsewhere]:
    places: dict[str, Elsewhere] = {}
    for node in nodes:
        try:
            places[node] = nodelocation.place(services, node, _SUMMARY)
        except status.StatusError:
            # It has no address: nobody can say anything about it.
            continue
    return places


def _nodes(
    stored: Sequence[record.Record], summaries: Mapping[str, Document], *, envelope: Document, now: dt.datetime
) -> Iterator[Document]:
    for each in stored:
        figures: Document = (summaries.get(each.key.name) or {}).get("node") or {}
        if figures.get("cpu") and figures.get("memory"):
            yield {**envelope, "metadata": _metadata(each, now), **_moment(figures, now), "usage": _usage(figures)}


def _pods(
    stored: Sequence[record.Record], summaries: Mapping[str, Document], *, envelope: Document, now: dt.datetime
) -> Iterator[Document]:
    of_pods: dict[str, Document] = {
        str((pod.get("podRef") or {}).get("uid")): pod
        for summary in summaries.values()
        for pod in summary.get("pods") or ()
    }
    for each in stored:
        figures = of_pods.get(each.uid)
        containers = [
            {"name": container["name"], "usage": _usage(container)}
            for container in (figures or {}).get("containers") or ()
            if container.get("cpu") and container.get("memory")
        ]
        if figures is not None and containers:
            yield {
                **envelope,
                "metadata": _metadata(each, now),
                **_moment(figures, now),
                "containers": containers,
            }


def _node_of(pod: record.Record) -> str:
    return str(pod.value["spec"].get("nodeName") or "")


def _metadata(of: record.Record, now: dt.datetime) -> Document:
    own = {"name": of.key.name, "namespace": of.key.namespace, "labels": of.value["metadata"].get("labels")}
    return {**{key: value for key, value in own.items() if value}, "creationTimestamp": meta.time_text(now)}


def _moment(figures: Document, now: dt.datetime) -> Document:
    seen = (figures.get("cpu") or {}).get("time") or meta.time_text(now)
    return {"timestamp": seen, "window": _WINDOW}


def _usage(figures: Document) -> Document:
    nanos = int(figures["cpu"].get("usageNanoCores") or 0)
    size = int(figures["memory"].get("workingSetBytes") or 0)
    return {"cpu": f"{nanos}n", "memory": f"{size // 1024}Ki"}
