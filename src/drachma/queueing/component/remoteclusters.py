"""Connections to other clusters: a client and the caches of each MultiKueueCluster, while it answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Final, TypeAlias

from drachma import errors
from drachma.client import protocol, target
from drachma.queueing.component import resources
from drachma.queueing.jobs import construction
from drachma.queueing.kinds import workload
from drachma.runtime import clock as clocks
from drachma.runtime import informers
from drachma.runtime.cache import Key
from drachma.runtime.informer import Handler

Connect: TypeAlias = Callable[[bytes, str], AbstractAsyncContextManager[protocol.Client]]
"""Returns a client for a kubeconfig, whose name is for messages. Raises errors.AccessError."""


class RemoteCluster:
    """One connection. The cache has the workloads of the cluster."""

    def __init__(self, client: protocol.Client, clock: clocks.Clock, listener: Callable[[Key], None]) -> None:
        self.client: Final = client
        self.informers: Final = informers.Informers(client, clock=clock)
        self.workloads: Final = self.informers.of(resources.WORKLOADS, with_documents=True)
        self._listener: Final = listener
        self._followed: Final[set[str]] = set()
        self.workloads.add_handler(Handler.on_change(self._handle))

    def _handle(self, wl: workload.Workload) -> None:
        self._listener(Key(wl.metadata.namespace, wl.metadata.name))

    def follow(self, resource: target.Target[Any]) -> None:
        """Report changes of jobs of a kind as changes of their workloads from now on."""
        if resource.plural in self._followed:
            return
        self._followed.add(resource.plural)

        def handle(job: Any) -> None:
            name = job.metadata.annotations.get(construction.PREBUILT) or job.metadata.labels.get(construction.PREBUILT)
            if name:
                self._listener(Key(job.metadata.namespace, name))

        self.informers.of(resource, with_documents=True).add_handler(Handler.on_change(handle))

    @property
    def problem(self) -> str:
        """Reason why the cluster cannot be used, or an empty text."""
        return "; ".join(self.informers.problems())


class RemoteClusters:
    """All connections. Each runs in a task until its kubeconfig changes or its cluster is removed."""

    def __init__(self, connect: Connect, clock: clocks.Clock, listener: Callable[[Key], None]) -> None:
        """``listener`` gets the keys of workloads that change in any cluster."""
        self._connect: Final = connect
        self._clock: Final = clock
        self._listener: Final = listener
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        self._configs: Final[dict[str, bytes]] = {}
        self._clusters: Final[dict[str, RemoteCluster]] = {}
        self._lost: Final[dict[str, datetime]] = {}

    @property
    def connected(self) -> Mapping[str, RemoteCluster]:
        """Connections by name of the cluster, of clusters that answer."""
        return {name: each for name, each in self._clusters.items() if not each.problem}

    def lost_since(self, name: str) -> datetime:
        """Return the time since which a cluster does not answer, which is now unless it was noticed before."""
        return self._lost.setdefault(name, self._clock.utc())

    async def set(self, name: str, config: bytes) -> str:
        """Connect to a cluster, unless it is connected. Return the problem of the connection, or an empty text."""
        if self._configs.get(name) != config or name not in self._clusters:
            await self.remove(name)
            self._configs[name] = config
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._tasks[name] = asyncio.create_task(self._run(name, config, started), name=f"cluster {name}")
            try:
                await started
            except errors.DrachmaError as error:
                await self.remove(name)
                return str(error)
        cluster = self._clusters.get(name)
        problem = "the connection has ended" if cluster is None else cluster.problem
        if problem:
            self.lost_since(name)
        else:
            self._lost.pop(name, None)
        return problem

    async def remove(self, name: str) -> None:
        """End the connection to a cluster, if there is one."""
        self._configs.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End all connections."""
        for name in tuple(self._tasks):
            await self.remove(name)

    async def _run(self, name: str, config: bytes, started: asyncio.Future[None]) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._connect(config, name))
                cluster = RemoteCluster(client, self._clock, self._listener)
                await stack.enter_async_context(cluster.informers)
                self._clusters[name] = cluster
                started.set_result(None)
                await asyncio.Event().wait()
        except errors.DrachmaError as error:
            if not started.done():
                started.set_exception(error)
        finally:
            self._clusters.pop(name, None)
