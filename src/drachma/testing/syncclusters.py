"""Clusters for tests without ``async``: every call lets the cluster work until it has its answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar

from drachma.api import meta
from drachma.api import pod as pods
from drachma.testing.clusters import Cluster, PodHandle, RunningPod, cluster

_AnswerT = TypeVar("_AnswerT")


class SyncCluster:
    """Cluster under test, idle between calls. See :class:`drachma.testing.clusters.Cluster`."""

    def __init__(self, runner: asyncio.Runner, cluster: Cluster) -> None:
        self._runner: Final = runner
        self._cluster: Final = cluster

    def run(self, coroutine: Coroutine[Any, Any, _AnswerT]) -> _AnswerT:
        """Run a coroutine on the cluster's event loop, and return its result."""
        return self._runner.run(coroutine)

    @property
    def asynchronous(self) -> Cluster:
        """Cluster with asynchronous methods."""
        return self._cluster

    def apply(self, *manifests: str) -> None:
        """Create or update the objects of manifests."""
        self.run(self._cluster.apply(*manifests))

    def delete(self, kind: type[meta.Object], name: str, *, namespace: str = "default") -> None:
        """Delete an object, with its grace period."""
        self.run(self._cluster.delete(kind, name, namespace=namespace))

    def advance(self, seconds: float) -> None:
        """Let time pass, with everything that the cluster does meanwhile."""
        self.run(self._cluster.advance(seconds))

    def pod(self, name: str, *, namespace: str = "default") -> SyncPodHandle:
        """Return a handle for a pod, which need not exist yet."""
        return SyncPodHandle(self, self._cluster.pod(name, namespace=namespace))

    def get_pod(self, name: str, *, namespace: str = "default") -> pods.Pod | None:
        """Return a pod in its current state, or None."""
        return self._cluster.get_pod(name, namespace=namespace)

    def devices_of(self, name: str, *, namespace: str = "default") -> list[str]:
        """Return the devices of a pod's claims as ``driver/pool/device``."""
        return self._cluster.devices_of(name, namespace=namespace)

    def explain(self, name: str, *, namespace: str = "default") -> str:
        """Return why a pod has no node."""
        return self._cluster.explain(name, namespace=namespace)


class SyncPodHandle:
    """Pod that a test waits for."""

    def __init__(self, cluster: SyncCluster, handle: PodHandle) -> None:
        self._cluster: Final = cluster
        self._handle: Final = handle

    def running(self, *, timeout: float = 120.0) -> RunningPod:
        """Wait until all containers run."""
        return self._cluster.run(self._handle.running(timeout=timeout))

    def succeeded(self, *, timeout: float = 120.0) -> RunningPod:
        """Wait until the pod has succeeded."""
        return self._cluster.run(self._handle.succeeded(timeout=timeout))

    def failed(self, *, timeout: float = 120.0) -> RunningPod:
        """Wait until the pod has failed."""
        return self._cluster.run(self._handle.failed(timeout=timeout))

    def waiting(self) -> str:
        """Wait until the scheduler has found no node for the pod, and return its message."""
        return self._cluster.run(self._handle.waiting())

    def gone(self) -> None:
        """Wait until the pod is deleted."""
        self._cluster.run(self._handle.gone())


@contextlib.contextmanager
def sync_cluster(**settings: Any) -> Iterator[SyncCluster]:
    """Run a cluster with the settings of :func:`drachma.testing.clusters.cluster`."""
    with asyncio.Runner() as runner:
        started: asyncio.Future[Cluster] = runner.get_loop().create_future()
        over = asyncio.Event()

        async def keep() -> None:
            # The same task must enter and leave the cluster's task groups.
            async with cluster(**settings) as running_cluster:
                started.set_result(running_cluster)
                await over.wait()

        keeper = runner.get_loop().create_task(keep())

        async def begin() -> Cluster:
            parts: set[asyncio.Future[Any]] = {keeper, started}
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            if keeper.done():
                await keeper
            return started.result()

        async def end() -> None:
            over.set()
            await keeper

        started_cluster = runner.run(begin())
        try:
            yield SyncCluster(runner, started_cluster)
        finally:
            runner.run(end())
