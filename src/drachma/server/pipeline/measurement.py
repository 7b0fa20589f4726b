"""Metrics of nodes and pods, as the nodes last reported them.

A node is asked at most once per interval. Only the figures that are served are kept, and only for nodes that were read
lately. Nodes that do not answer in time are left out, and so are pods that their node does not report.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.api import meta
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import nodelocation
from drachma.server.pipeline.answer import Answer, NodeEndpoint, Verbatim
from drachma.server.pipeline.services import AskNodes, Services
from drachma.store import record

_SUMMARY: Final = "/stats/summary"
_WINDOW: Final = "10s"
_NODES: Final = "nodes"

Document: TypeAlias = Mapping[str, Any]


async def get(services: Services, call: Call) -> Answer:
    """Return the metrics of one node or pod."""
    for item in await _items(services, call, call.target.name):
        return Answer(200, Verbatim(item))
    raise status.not_found(call.target.resource, call.target.name)


async def list_(services: Services, call: Call) -> Answer:
    """Return the metrics of all nodes or pods in the scope whose labels match."""
    resource = call.target.resource
    items = await _items(services, call, "")
    content = {"kind": resource.list_kind, "apiVersion": call.target.api_version, "metadata": {}, "items": items}
    return Answer(200, Verbatim(content))


async def _items(services: Services, call: Call, name: str) -> list[Document]:
    target = call.target
    selector = options.read_list_options(call.query, target.resource, version=target.version).labels
    namespace = target.namespace if target.resource.namespaced else None
    objects = [
        each
        for each in services.store.list(target.resource.plural, namespace).records
        if (not name or each.key.name == name) and selector.matches(each.value["metadata"].get("labels") or {})
    ]
    nodes = {each.key.name if target.resource.plural == _NODES else _node_of(each) for each in objects} - {""}
    summaries = await services.ask_nodes(_places(services, nodes))
    make = _nodes if target.resource.plural == _NODES else _pods
    envelope = {"kind": target.resource.kind, "apiVersion": target.api_version}
    return list(make(objects, summaries, envelope=envelope, now=services.clock()))


def _places(services: Services, nodes: Iterable[str]) -> dict[str, NodeEndpoint]:
    places: dict[str, NodeEndpoint] = {}
    for node in nodes:
        try:
            places[node] = nodelocation.place(services, node, _SUMMARY)
        except status.StatusError:
            # A node without an address cannot be asked.
            continue
    return places


def _nodes(
    objects: Sequence[record.Record], summaries: Mapping[str, Document], *, envelope: Document, now: dt.datetime
) -> Iterator[Document]:
    for each in objects:
        figures: Document = (summaries.get(each.key.name) or {}).get("node") or {}
        if figures.get("cpu") and figures.get("memory"):
            yield {**envelope, "metadata": _metadata(each, now), **_moment(figures, now), "usage": _usage(figures)}


def _pods(
    objects: Sequence[record.Record], summaries: Mapping[str, Document], *, envelope: Document, now: dt.datetime
) -> Iterator[Document]:
    summaries_by_uid: dict[str, Document] = {
        str((pod.get("podRef") or {}).get("uid")): pod
        for summary in summaries.values()
        for pod in summary.get("pods") or ()
    }
    for each in objects:
        figures = summaries_by_uid.get(each.uid)
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


def _metadata(subject: record.Record, now: dt.datetime) -> Document:
    fields = {
        "name": subject.key.name,
        "namespace": subject.key.namespace,
        "labels": subject.value["metadata"].get("labels"),
    }
    return {**{key: value for key, value in fields.items() if value}, "creationTimestamp": meta.time_text(now)}


def _moment(figures: Document, now: dt.datetime) -> Document:
    time = (figures.get("cpu") or {}).get("time") or meta.time_text(now)
    return {"timestamp": time, "window": _WINDOW}


def _usage(figures: Document) -> Document:
    nanos = int(figures["cpu"].get("usageNanoCores") or 0)
    size = int(figures["memory"].get("workingSetBytes") or 0)
    return {"cpu": f"{nanos}n", "memory": f"{size // 1024}Ki"}


INTERVAL: Final = dt.timedelta(seconds=10)
"""Time that an answer is valid; kubelets themselves measure no more often."""

_KEPT: Final = 6 * INTERVAL
"""Time that an answer is kept after the last read."""


class _Answer(NamedTuple):
    """Time and content of a node's answer. None means no answer; such a node is not asked again at once."""

    when: dt.datetime
    summary: Document | None


class NodeSummaries:
    """Last answers of nodes, by name."""

    def __init__(self, ask: AskNodes, clock: Callable[[], dt.datetime]) -> None:
        self._ask: Final = ask
        self._clock: Final = clock
        self._answers: Final[dict[str, _Answer]] = {}
        self._make_ask: Final = asyncio.Lock()

    async def read(self, places: Mapping[str, NodeEndpoint]) -> Mapping[str, Document]:
        """Return the summaries of nodes, after asking those whose answers are too old.

        Concurrent readers share a request.
        """
        async with self._make_ask:
            now = self._clock()
            stale = {name: where for name, where in places.items() if not self._is_fresh(name, now)}
            if stale:
                summaries = await self._ask(stale)
                for name in stale:
                    summary = summaries.get(name)
                    self._answers[name] = _Answer(now, None if summary is None else served_part(summary))
                for name in [name for name, each in self._answers.items() if now - each.when > _KEPT]:
                    del self._answers[name]
        answers = {name: self._answers[name].summary for name in places if name in self._answers}
        return {name: summary for name, summary in answers.items() if summary is not None}

    def _is_fresh(self, name: str, now: dt.datetime) -> bool:
        return name in self._answers and now - self._answers[name].when < INTERVAL


def served_part(summary: Document) -> Document:
    """Return the part of a summary that is served."""
    pods = [
        {
            "podRef": {"uid": (each.get("podRef") or {}).get("uid")},
            **_figures(each),
            "containers": [{"name": one["name"], **_figures(one)} for one in each.get("containers") or ()],
        }
        for each in summary.get("pods") or ()
    ]
    return {"node": _figures(summary.get("node") or {}), "pods": pods}


def _figures(summary: Document) -> Document:
    return {name: summary[name] for name in ("cpu", "memory") if summary.get(name)}
