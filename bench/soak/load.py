"""Load of the matrix: jobs in queues with device quota, gangs, pods with claims, and plain writes.

Devices and quota are the bottleneck. The load is closed: there are at most so many unfinished things of each kind, and
finished ones are deleted. Every acknowledged write goes to the observer.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from bench.soak import manifests, wire
from bench.soak.observer import PATHS, Observer

_TICK_SECONDS: Final = 0.08
_MOST_JOBS: Final = 10
_MOST_PODS: Final = 8
_MOST_GANGS: Final = 2
_MOST_MAPS: Final = 20
_DELETE_CHANCE: Final = 0.06
_FINISHED: Final = ("Succeeded", "Failed")

Document = dict[str, Any]


class Load:
    """Writer of all load; pausing it lets the cluster drain."""

    def __init__(self, access: wire.Wire, observer: Observer, *, rng: random.Random) -> None:
        self.acknowledged = 0
        self.refused = 0
        self.is_paused = False
        self._wire = access
        self._observer = observer
        self._rng = rng
        self._number = 0
        self._busy: set[str] = set()
        self._forming: set[str] = set()
        """Gangs whose pods are being created."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._clean_up()
            if not self.is_paused and len(self._tasks) < 16:
                self._spawn(self._act())

    async def create(self, kind: str, document: Document) -> bool:
        """Create an object; return True if the server acknowledged it."""
        return is_acknowledged(await self.attempt_create(kind, document))

    async def attempt_create(self, kind: str, document: Document) -> wire.Answer:
        """Create an object, and return the server's answer."""
        namespace = document["metadata"]["namespace"]
        answer = await self._wire.call("POST", _namespaced(kind, namespace), document)
        self._note(kind, answer)
        return answer

    async def delete(self, kind: str, document: Document) -> None:
        """Delete an object that the observer saw."""
        metadata = document["metadata"]
        if metadata["uid"] in self._busy:
            return
        self._busy.add(metadata["uid"])
        path = f"{_namespaced(kind, metadata['namespace'])}/{metadata['name']}"
        options = {"propagationPolicy": "Background", "preconditions": {"uid": metadata["uid"]}}
        answer = await self._wire.call("DELETE", path, options)
        if answer.code == 200:
            self.acknowledged += 1
            self._observer.acknowledge_delete(kind, metadata["uid"])
        elif answer.code != 404:
            self._busy.discard(metadata["uid"])

    async def _act(self) -> None:
        rng = self._rng
        if rng.random() < _DELETE_CHANCE:
            await self._delete_something()
            return
        match rng.choice(("job", "job", "pod", "gang", "map", "map")):
            case "job" if len(self._own("jobs")) < _MOST_JOBS:
                queue, count = rng.choice(manifests.QUEUES), rng.randint(1, 3)
                await self.create("jobs", manifests.job(self._name("job"), queue=queue, pods=count, rng=rng))
            case "pod" if len(self._lone_pods()) < _MOST_PODS:
                name = self._name("pod")
                await self.create("pods", manifests.pod(name, rng=rng))
            case "gang" if len(self._own("podgroups")) < _MOST_GANGS:
                await self._create_gang(self._name("gang"), rng.randint(2, 4))
            case "map":
                await self._write_map()

    async def _create_gang(self, name: str, size: int) -> None:
        self._forming.add(name)
        if await self.create("podgroups", manifests.pod_group(name, size=size)):
            for number in range(size):
                await self.create("pods", manifests.pod(f"{name}-{number}", gang=name, rng=self._rng))
        self._forming.discard(name)

    async def _write_map(self) -> None:
        maps = self._own("configmaps")
        if len(maps) < _MOST_MAPS:
            await self.create("configmaps", manifests.config_map(self._name("map")))
            return
        document = self._rng.choice(maps)
        if self._rng.random() < 0.2:
            await self.delete("configmaps", document)
            return
        path = f"{_namespaced('configmaps', 'default')}/{document['metadata']['name']}"
        change = {"data": {"step": str(self._count())}}
        self._note("configmaps", await self._wire.call("PATCH", path, change, content_type=wire.MERGE_PATCH))

    async def _delete_something(self) -> None:
        kind = self._rng.choice(("jobs", "pods"))
        candidates = self._own("jobs") if kind == "jobs" else self._lone_pods()
        if candidates:
            await self.delete(kind, self._rng.choice(candidates))

    def _clean_up(self) -> None:
        """Delete what has finished."""
        pods = self._own("pods")
        for document in self._own("jobs"):
            conditions = document.get("status", {}).get("conditions", ())
            if any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions):
                self._spawn_delete("jobs", document)
        for document in pods:
            is_alone = not document["metadata"].get("ownerReferences")
            if is_alone and document.get("status", {}).get("phase") in _FINISHED:
                self._spawn_delete("pods", document)
        if self.is_paused:
            # A gang that lost pods when their creates failed never starts.
            sizes = {
                each["metadata"]["name"]: int(each["metadata"]["labels"]["size"]) for each in self._own("podgroups")
            }
            for name, size in sizes.items():
                members = [each for each in pods if each["metadata"].get("labels", {}).get("gang") == name]
                if 0 < len(members) < size and not any(each.get("spec", {}).get("nodeName") for each in members):
                    for member in members:
                        self._spawn_delete("pods", member)
        members_left = {each["metadata"].get("labels", {}).get("gang") for each in pods}
        for document in self._own("podgroups"):
            name = document["metadata"]["name"]
            is_over = name not in members_left and name not in self._forming
            if is_over and (self.is_paused or self._rng.random() < 0.01):
                self._spawn_delete("podgroups", document)

    def _spawn_delete(self, kind: str, document: Document) -> None:
        if document["metadata"]["uid"] not in self._busy and len(self._tasks) < 64:
            self._spawn(self.delete(kind, document))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note(self, kind: str, answer: wire.Answer) -> None:
        if not is_acknowledged(answer):
            self.refused += 1
            return
        self.acknowledged += 1
        self._observer.acknowledge(kind, answer.document)

    def _own(self, kind: str) -> list[Document]:
        """Objects of a kind that the load made: those of the canary have another label."""
        return [
            each
            for each in self._observer.checker.objects[kind].values()
            if each["metadata"].get("labels", {}).get("soak") == "load"
        ]

    def _lone_pods(self) -> list[Document]:
        return [each for each in self._own("pods") if not each["metadata"].get("ownerReferences")]

    def _name(self, prefix: str) -> str:
        return f"{prefix}-{self._count()}"

    def _count(self) -> int:
        self._number += 1
        return self._number


def is_acknowledged(answer: wire.Answer) -> bool:
    """Return True if the server has made a write."""
    return answer.code in (200, 201)


def _namespaced(kind: str, namespace: str) -> str:
    root, _, _ = PATHS[kind].removesuffix(f"/{kind}").partition("/namespaces/")
    return f"{root}/namespaces/{namespace}/{kind}"
