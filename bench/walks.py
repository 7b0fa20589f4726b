"""Four walks through the tree: the modules and functions that each crosses, and the requests that it makes.

``python -m bench walks`` runs them all, each in a process of its own. ``python -m bench.walks WALK ...`` runs some of
them here, and ``--callers`` adds the modules that make the requests. A walk that runs in a cluster is made twice: the
cold one is the first of its process, the warm one finds every cache filled.

A module is crossed if at least one of its functions runs. Requests are counted where components in the server's own
process hand them over. A commit is one write, however many objects it changes; changes are counted as well.
"""

import asyncio
import collections
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import drachma

if TYPE_CHECKING:
    from drachma.client import local

# Modules of drachma are imported by the walks that need them, so that what `explain` imports can be counted.

_ROOT: Final = str(pathlib.Path(drachma.__file__).parent)
_PATIENCE_SECONDS: Final = 60
_BELOW_COMPONENTS: Final = ("/client/", "/server/")

CLASS: Final = "gpu.simulation.drachma.dev"
CLAIM: Final = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: NAME}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {CLASS}}}}}]}}}}
"""
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {simulation.drachma.dev/run-seconds: "600"}}
spec:
  restartPolicy: Never
  containers: [{name: main, image: train, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""
OFFLINE: Final = f"""
apiVersion: v1
kind: Node
metadata: {{name: worker}}
status:
  allocatable: {{cpu: "8", memory: 32Gi, pods: "110"}}
  capacity: {{cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {CLASS}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-gpu, namespace: default}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {CLASS}}}}}]}}}}}}
---
{POD.replace("NAME", "train")}"""


class Walk(NamedTuple):
    """A walk and its title."""

    title: str
    run: Callable[[], None]


class Trace:
    """Functions of drachma that run, and requests that components make, while it is entered."""

    def __init__(self) -> None:
        self._functions: Final[set[tuple[str, str, int]]] = set()
        self.writes = 0
        self.requests: Final[collections.Counter[tuple[str, str]]] = collections.Counter()
        self.callers: Final[collections.Counter[tuple[str, str, str]]] = collections.Counter()

    @property
    def modules(self) -> int:
        """Return the number of modules of which a function ran."""
        return len({path for path, _, _ in self._functions})

    @property
    def functions(self) -> int:
        """Return the number of functions that ran."""
        return len(self._functions)

    def count(self, verb: str, place: "local.Place") -> None:
        """Count one request of a component."""
        resource = "/".join(filter(None, (place.plural, place.subresource)))
        self.requests[verb, resource] += 1
        self.callers[verb, resource, _calling_module()] += 1

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record until the context is left."""
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_ROOT) and code.co_name != "<module>":
            self._functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))


def _calling_module() -> str:
    """Return the module of the component that makes the current request."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_ROOT) and not any(part in path for part in _BELOW_COMPONENTS):
            return path.removeprefix(_ROOT).removeprefix("/")
        frame = frame.f_back
    return "the walk"


class _Counter:
    """Counts the requests that reach the server's door for components, while it is entered."""

    def __init__(self) -> None:
        self.trace = Trace()

    def __enter__(self) -> "_Counter":
        from drachma.server import inprocess

        door: Any = inprocess.InProcess
        self._door, self._methods = door, (door.get, door.write, door.commit)
        get, write, commit = self._methods

        def counted_get(backend: Any, place: "local.Place") -> Awaitable[Any]:
            self.trace.count("get", place)
            answer: Awaitable[Any] = get(backend, place)
            return answer

        def counted_write(backend: Any, request: "local.Write") -> Awaitable[Any]:
            self.trace.writes += 1
            self.trace.count(request.verb, request.place)
            answer: Awaitable[Any] = write(backend, request)
            return answer

        def counted_commit(backend: Any, requests: Any) -> Awaitable[Any]:
            self.trace.writes += 1
            for request in requests:
                self.trace.count(f"{request.verb} (commit)", request.place)
            answer: Awaitable[Any] = commit(backend, requests)
            return answer

        door.get, door.write, door.commit = counted_get, counted_write, counted_commit
        return self

    def __exit__(self, *_: object) -> None:
        self._door.get, self._door.write, self._door.commit = self._methods


@contextlib.asynccontextmanager
async def _cluster() -> AsyncIterator[Any]:
    """A control plane with a simulated machine and a queue."""
    from tests.scenarios import queues

    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=8)
        await cluster.advance(1)
        yield cluster


async def _twice(act: Callable[[Any, str], Awaitable[None]]) -> None:
    # Clients bind the methods of the door when they are built.
    with _Counter() as counter:
        async with _cluster() as cluster:
            for temperature in ("cold", "warm"):
                trace = counter.trace = Trace()
                with trace.recording():
                    await act(cluster, temperature)
                    await cluster.settle()
                _print(f"{temperature}: {trace.modules} modules, {trace.functions} functions", trace)


def _print(title: str, trace: Trace) -> None:
    print(f"\n{title}")
    reads = sum(count for (verb, _), count in trace.requests.items() if verb == "get")
    events = sum(count for (_, resource), count in trace.requests.items() if resource == "events")
    changes = trace.requests.total() - reads
    print(f"  {reads} GETs, {trace.writes} writes with {changes} changes of objects, {events} of them events")
    for (verb, resource), count in sorted(trace.requests.items()):
        print(f"  {count:4} {verb} {resource}")
    if "--callers" in sys.argv:
        for (verb, resource, module), count in sorted(trace.callers.items()):
            print(f"       {count:4} {verb} {resource} by {module}")


async def _until_running(cluster: Any, prefix: str) -> None:
    from drachma.api import pod

    for _ in range(_PATIENCE_SECONDS):
        pods = [each for each in await cluster.all_of(pod.Pod) if each.metadata.name.startswith(prefix)]
        if pods and all(each.status.phase == "Running" for each in pods):
            return
        await cluster.advance(1)
    raise TimeoutError(f"pod {prefix}: does not run")


async def _apply_claim(cluster: Any, name: str) -> None:
    from drachma.api import manifest, resourceclaim
    from drachma.client import patches

    (document,) = [each.content for each in manifest.read(CLAIM.replace("NAME", name))]
    await cluster.client.patch(resourceclaim.ResourceClaim, name, patch=patches.apply(document), namespace="default")


async def _run_pod(cluster: Any, name: str) -> None:
    await cluster.apply(POD.replace("NAME", name))
    await _until_running(cluster, name)


async def _run_job(cluster: Any, name: str) -> None:
    await cluster.put_job(name, seconds=600)
    await _until_running(cluster, name)


def _claim() -> None:
    asyncio.run(_twice(_apply_claim))


def _pod() -> None:
    asyncio.run(_twice(_run_pod))


def _job() -> None:
    asyncio.run(_twice(_run_job))


def _explain() -> None:
    from drachma.cli import root

    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cluster.yaml"
        path.write_text(OFFLINE)

        def explain() -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                root.app(["explain", "pod", "train", "-f", str(path)])

        # The first run imports modules, and decorators that run then are no part of the walk.
        explain()
        imported = sum(name == "drachma" or name.startswith("drachma.") for name in sys.modules)
        with trace.recording():
            explain()
    _print(f"{trace.modules} modules run, {imported} imported, {trace.functions} functions", trace)


WALKS: Final = {
    "claim": Walk("Apply a claim", _claim),
    "pod": Walk("Pod with a claim template until it runs", _pod),
    "job": Walk("Job of one pod through a queue until it runs", _job),
    "explain": Walk("drachma explain pod -f", _explain),
}


def main() -> None:
    """Run every walk in a process of its own."""
    for name in WALKS:
        subprocess.run([sys.executable, "-m", "bench.walks", name], check=True)


if __name__ == "__main__":
    for argument in [each for each in sys.argv[1:] if not each.startswith("-")] or WALKS:
        print(WALKS[argument].title, flush=True)
        WALKS[argument].run()
