"""Nodes are asked for their figures now and again, however many want to know."""

import asyncio
import datetime as dt
from collections.abc import Mapping
from typing import Any

from drachma.server.pipeline import measurement
from drachma.server.pipeline.answer import NodeEndpoint

CPU = {"time": "2026-01-01T00:00:00Z", "usageNanoCores": 5}
SUMMARY = {
    "node": {"nodeName": "n", "cpu": CPU, "fs": {"usedBytes": 7}},
    "pods": [
        {
            "podRef": {"name": "p", "uid": "u"},
            "cpu": CPU,
            "network": {},
            "containers": [{"name": "c", "memory": {"workingSetBytes": 1}, "logs": {}}],
        }
    ],
}


class Nodes:
    """Nodes that count how often they are asked."""

    def __init__(self) -> None:
        self.now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.asked: list[list[str]] = []
        self.silent: set[str] = set()

    async def ask(self, places: Mapping[str, NodeEndpoint]) -> dict[str, Mapping[str, Any]]:
        self.asked.append(sorted(places))
        await asyncio.sleep(0)
        return {name: SUMMARY for name in places if name not in self.silent}


def _places(*names: str) -> dict[str, NodeEndpoint]:
    return {name: NodeEndpoint(node=name, host="127.0.0.1", port=1, path="/stats/summary") for name in names}


async def test_many_readers_and_one_question() -> None:
    nodes = Nodes()
    memory = measurement.NodeSummaries(nodes.ask, lambda: nodes.now)
    answers = await asyncio.gather(*(memory.read(_places("a", "b")) for _ in range(5)))
    assert all(set(answer) == {"a", "b"} for answer in answers)
    assert nodes.asked == [["a", "b"]]
    nodes.now += measurement.INTERVAL / 2
    await memory.read(_places("b", "c"))
    assert nodes.asked[1:] == [["c"]]
    nodes.now += measurement.INTERVAL / 2
    await memory.read(_places("a", "c"))
    assert nodes.asked[2:] == [["a"]]


async def test_who_does_not_answer_is_left_out_for_a_while() -> None:
    nodes = Nodes()
    memory = measurement.NodeSummaries(nodes.ask, lambda: nodes.now)
    nodes.silent = {"a"}
    assert set(await memory.read(_places("a", "b"))) == {"b"}
    nodes.silent = set()
    assert set(await memory.read(_places("a", "b"))) == {"b"}
    nodes.now += measurement.INTERVAL
    assert set(await memory.read(_places("a", "b"))) == {"a", "b"}


def test_only_what_is_shown_is_kept() -> None:
    assert measurement.served_part(SUMMARY) == {
        "node": {"cpu": CPU},
        "pods": [{"podRef": {"uid": "u"}, "cpu": CPU, "containers": [{"name": "c", "memory": {"workingSetBytes": 1}}]}],
    }
