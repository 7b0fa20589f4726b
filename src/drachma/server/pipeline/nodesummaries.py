"""What nodes last said of themselves: they are asked now and again, not whenever somebody wants to know.

Of each answer only the figures are kept that are shown, for nodes that somebody asked about lately.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from drachma.server.pipeline.answer import Elsewhere
from drachma.server.pipeline.services import AskNodes

INTERVAL: Final = dt.timedelta(seconds=10)
"""For so long an answer is good; kubelets themselves look no more often."""

_KEPT: Final = 6 * INTERVAL
"""For so long an answer is kept that nobody asks for."""

Document = Mapping[str, Any]


class _Answer(NamedTuple):
    """What a node said, and when; None where it did not answer, which is not asked again at once either."""

    when: dt.datetime
    summary: Document | None


class NodeSummaries:
    """The last answers of nodes, by their names."""

    def __init__(self, ask: AskNodes, clock: Callable[[], dt.datetime]) -> None:
        self._ask: Final = ask
        self._clock: Final = clock
        self._answers: Final[dict[str, _Answer]] = {}
        self._asking: Final = asyncio.Lock()

    async def of(self, places: Mapping[str, Elsewhere]) -> Mapping[str, Document]:
        """What these nodes say; who has not answered lately is asked first, by one reader for all who wait."""
        async with self._asking:
            now = self._clock()
            stale = {name: where for name, where in places.items() if not self._is_fresh(name, now)}
            if stale:
                summaries = await self._ask(stale)
                for name in stale:
                    summary = summaries.get(name)
                    self._answers[name] = _Answer(now, None if summary is None else essence(summary))
                for name in [name for name, each in self._answers.items() if now - each.when > _KEPT]:
                    del self._answers[name]
        known = {name: self._answers[name].summary for name in places if name in self._answers}
        return {name: summary for name, summary in known.items() if summary is not None}

    def _is_fresh(self, name: str, now: dt.datetime) -> bool:
        return name in self._answers and now - self._answers[name].when < INTERVAL


def essence(summary: Document) -> Document:
    """The part of a summary that somebody is shown."""
    pods = [
        {
            "podRef": {"uid": (each.get("podRef") or {}).get("uid")},
            **_figures(each),
            "containers": [{"name": one["name"], **_figures(one)} for one in each.get("containers") or ()],
        }
        for each in summary.get("pods") or ()
    ]
    return {"node": _figures(summary.get("node") or {}), "pods": pods}


def _figures(of: Document) -> Document:
    return {name: of[name] for name in ("cpu", "memory") if of.get(name)}
