"""Observer outside the cluster: follows all kinds over every fault, and feeds history and invariants."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import aiohttp
import msgspec

from bench.soak import history, invariants
from bench.soak.wire import Wire

PATHS: Final = {
    "pods": "/api/v1/pods",
    "configmaps": "/api/v1/namespaces/default/configmaps",
    "jobs": "/apis/batch/v1/jobs",
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
    "podgroups": "/apis/scheduling.k8s.io/v1beta1/podgroups",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2/workloads",
    "clusterqueues": "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
}
"""Kinds that are watched, by plural."""

_PAUSE_SECONDS: Final = 0.2
_GONE: Final = 410


class Observer:
    """Watches, and the invariants over all that they show."""

    def __init__(self, wire: Wire, record: history.HistoryFile) -> None:
        self.checker = invariants.Checker()
        self.violations: list[invariants.Violation] = []
        self.gaps = 0
        self.events = 0
        self._wire = wire
        self._record = record
        self._began = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: dict[str, float] = {}

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._follow(kind, path)) for kind, path in PATHS.items()]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def check_tasks(self) -> None:
        """Raise the error of a watch that ended for a reason of the observer's own."""
        for task in self._tasks:
            if task.done():
                task.result()

    def silence(self, kind: str) -> float:
        """Return the seconds since the server last said anything about a kind."""
        return round(self.seconds - self._heard.get(kind, 0.0), 1)

    @property
    def seconds(self) -> float:
        """Time since the observer began."""
        return round(time.monotonic() - self._began, 3)

    def acknowledge(self, kind: str, document: dict[str, Any]) -> None:
        """Record a write that the server acknowledged with this object."""
        metadata = document["metadata"]
        self._add(history.Write(kind, metadata["uid"], int(metadata["resourceVersion"]), self.seconds))

    def acknowledge_delete(self, kind: str, uid: str) -> None:
        """Record a deletion that the server acknowledged."""
        self._add(history.Delete(kind, uid, self.seconds))

    def mark(self, text: str) -> None:
        """Record a remark."""
        self._add(history.Mark(text, self.seconds))

    def complain(self, violation: invariants.Violation) -> None:
        """Record a violation and print it."""
        self.violations.append(violation)
        self._record.add(history.Mark(f"VIOLATION {violation}", self.seconds))
        print(f"  VIOLATION at {self.seconds:.1f} s: {violation}", flush=True)

    def _add(self, entry: history.Entry) -> None:
        self._record.add(entry)
        for violation in self.checker.feed(entry):
            self.complain(violation)

    async def _follow(self, kind: str, path: str) -> None:
        """Watch a kind for ever: list once, then resume at the last revision after every interruption."""
        revision = await self._list(kind, path)
        while True:
            try:
                revision = await self._watch(kind, path, revision)
            except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError):
                await asyncio.sleep(_PAUSE_SECONDS)
            except _GoneError:
                self.gaps += 1
                revision = await self._list(kind, path)

    async def _list(self, kind: str, path: str) -> int:
        while (answer := await self._wire.call("GET", path)).code != 200:
            await asyncio.sleep(_PAUSE_SECONDS)
        revision = int(answer.document["metadata"]["resourceVersion"])
        self._heard[kind] = self.seconds
        self._add(history.Gap(kind, revision, self.seconds))
        for item in answer.document["items"]:
            self._see(kind, "LISTED", item)
        return revision

    async def _watch(self, kind: str, path: str, revision: int) -> int:
        """Read one watch to its end; return the revision to resume at."""
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={revision}"
        try:
            async with self._wire.watch(path + query) as response:
                if response.status == _GONE:
                    raise _GoneError
                if response.status != 200:
                    await asyncio.sleep(_PAUSE_SECONDS)
                    return revision
                async for line in response.content:
                    self._heard[kind] = self.seconds
                    event = msgspec.json.decode(line)
                    document = event["object"]
                    if event["type"] == "ERROR":
                        if document.get("code") == _GONE:
                            raise _GoneError
                        await asyncio.sleep(_PAUSE_SECONDS)
                        return revision
                    revision = int(document["metadata"]["resourceVersion"])
                    if event["type"] != "BOOKMARK":
                        self._see(kind, event["type"], document)
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError):
            await asyncio.sleep(_PAUSE_SECONDS)
        return revision

    def _see(self, kind: str, type_: str, document: dict[str, Any]) -> None:
        self.events += 1
        self._add(history.Event(kind, type_, history.reduce_document(document), self.seconds))


class _GoneError(Exception):
    """The server has forgotten the revision to resume at."""
