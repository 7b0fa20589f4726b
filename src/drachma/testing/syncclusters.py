"""The same cluster for tests without ``async``: every call lets the cluster work until it has its answer."""

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
    """A cluster under test. Between calls nothing happens in it. See :class:`drachma.testing.clusters.Cluster`."""

    def __init__(self, runner: asyncio.Runner, of: Cluster) -> None:
        self._runner: Final = runner
        self._cluster: Final = of

    def run(self, coroutine: Coroutine[Any, Any, _AnswerT]) -> _AnswerT:
        """The answer of whatever is not here, on the cluster's event loop."""
        return self._runner.run(coroutine)

    @property
    def asynchronous(self) -> Cluster:
        """The cluster itself."""
        return self._cluster

    def apply(self, *manifests: str) -> None:
        """Creates or updates what manifests say."""
        self.run(self._cluster.apply(*manifests))

    def delete(self, kind: type[meta.Object], name: str, *, namespace: str = "default") -> None:
        """Deletes an object, with the grace that it has."""
        self.run(self._cluster.delete(kind, name, namespace=namespace))

    def advance(self, seconds: float) -> None:
        """Lets time pass, and everything happen that happens meanwhile."""
        self.run(self._cluster.advance(seconds))

    def pod(self, name: str, *, namespace: str = "default") -> SyncPodHandle:
        """A pod, which need not be there yet."""
        return SyncPodHandle(self, self._cluster.pod(name, namespace=namespace))

    def get_pod(self, name: str, *, namespace: str = "default") -> pods.Pod | None:
        """A pod as it is now."""
        return self._cluster.get_pod(name, namespace=namespace)

    def devices_of(self, name: str, *, namespace: str = "default") -> list[str]:
        """What the claims of a pod were given, as ``driver/pool/device``."""
        return self._cluster.devices_of(name, namespace=namespace)

    def explain(self, name: str, *, namespace: str = "default") -> str:
        """Why a pod is not where it should be."""
        return self._cluster.explain(name, namespace=namespace)


class SyncPodHandle:
    """A pod that a test waits for."""

    def __init__(self, of: SyncCluster, handle: PodHandle) -> None:
        self._cluster: Final = of
        self._handle: Final = handle

    def running(self) -> RunningPod:
        """Waits until all containers run."""
        return self._cluster.run(self._handle.running())

    def succeeded(self) -> RunningPod:
        """Waits until it has ended well."""
        return self._cluster.run(self._handle.succeeded())

    def failed(self) -> RunningPod:
        """Waits until it has ended badly."""
        return self._cluster.run(self._handle.failed())

    def waiting(self) -> str:
        """Waits until the scheduler has said that it cannot be placed; what it said."""
        return self._cluster.run(self._handle.waiting())

    def gone(self) -> None:
        """Waits until it is deleted."""
        self._cluster.run(self._handle.gone())


@contextlib.contextmanager
def sync_cluster(**settings: Any) -> Iterator[SyncCluster]:
    """A cluster with the settings of :func:`drachma.testing.clusters.cluster`."""
    with asyncio.Runner() as runner:
        started: asyncio.Future[Cluster] = runner.get_loop().create_future()
        over = asyncio.Event()

        async def keep() -> None:
            # One task enters and leaves: task groups want that.
            async with cluster(**settings) as made:
                started.set_result(made)
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

        of = runner.run(begin())
        try:
            yield SyncCluster(runner, of)
        finally:
            runner.run(end())
