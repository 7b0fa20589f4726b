"""Nodes as users run them: a control plane, agents of nodes and drivers, each a process of its own on real sockets."""

import asyncio
import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from drachma.api import event, node, pod
from drachma.client import http
from drachma.runtime import clock
from tests import clusterview, patience
from tests.scenarios import processes

FAKE_DRIVER = (sys.executable, "-m", "tests.scenarios.fakedriver")

_TOKEN = "{name}-token"


class Talker:
    """A process that says lines on its standard output and is told some; what else it says is in a log."""

    def __init__(self, process: asyncio.subprocess.Process, log: pathlib.Path) -> None:
        self.lines: list[str] = []
        self._process = process
        self._log = log
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None, "the output is piped"
        while line := await self._process.stdout.readline():
            self.lines.append(line.decode().strip())

    async def says(self, beginning: str, *, times: int = 1) -> str:
        """Waits until it has said a line with this beginning, so many times; the line, of several the last."""

        async def said() -> list[str]:
            lines = [line for line in self.lines if line.startswith(beginning)]
            assert len(lines) >= times or self._process.returncode is None, f"it has ended: {self.story()}"
            return lines

        what = f"{times} lines that begin with {beginning!r}"
        return (await patience.until_async(said, lambda lines: len(lines) >= times, what=what))[times - 1]

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None, "the input is piped"
        self._process.stdin.write(f"{line}\n".encode())

    async def kill(self) -> None:
        """Ends it as kill -9 does."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._ended()

    async def close_input(self) -> None:
        """Has it end where that is how it is told to, and waits until it has."""
        assert self._process.stdin is not None, "the input is piped"
        self._process.stdin.close()
        await self._ended()

    async def _ended(self) -> None:
        async with asyncio.timeout(patience.SECONDS):
            await self._process.wait()
            await self._reading

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    def story(self) -> str:
        """All that it said, for who wonders."""
        return "\n".join([*self.lines, self._log.read_text()[-4000:]])


class NodeCluster(clusterview.ClusterView):
    """A control plane in a process, whose nodes come and go."""

    def __init__(self, client: http.HttpClient, server: processes.Process, folder: pathlib.Path) -> None:
        super().__init__(client)
        self.server = server
        self.folder = folder
        self.cdi = folder / "cdi"
        self._talkers: list[Talker] = []
        self._endings: list[Callable[[], None]] = []

    def root(self, name: str) -> pathlib.Path:
        """The directory of a node."""
        return self.folder / name

    async def talker(
        self,
        title: str,
        *command: str,
        kubeconfig: pathlib.Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Talker:
        """Start a process that is ended with the test, if it has not ended before."""
        settings = {"KUBECONFIG": str(kubeconfig or self.server.kubeconfig), "PYTHONUNBUFFERED": "1"}
        log = self.folder / f"{title}.log"
        with log.open("ab") as errors_to:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors_to,
                env={**os.environ, **settings, **(environment or {})},
                cwd=pathlib.Path(__file__).parents[2],
            )
        talker = Talker(process, log)
        self._talkers.append(talker)
        return talker

    async def agent(self, name: str, *options: str) -> Talker:
        """Starts the agent of a node with the node's own identity, and waits until it is there."""
        started = await self.talker(
            f"agent-{name}",
            *processes.DRACHMA,
            "node",
            "--name",
            name,
            "--root",
            str(self.root(name)),
            *options,
            kubeconfig=self.identity(name),
        )
        await self.node_is_ready(name)
        return started

    def identity(self, name: str) -> pathlib.Path:
        """The kubeconfig of a node."""
        content: dict[str, Any] = yaml.safe_load(self.server.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": _TOKEN.format(name=name)}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    async def driver(
        self, name: str, *nodes: str, program: Sequence[str] = FAKE_DRIVER, options: Sequence[str] = ()
    ) -> Talker:
        """Starts a driver for nodes, and waits until it is registered with all of them."""
        self.cdi.mkdir(exist_ok=True)
        chosen = [part for each in nodes for part in ("-node", each)]
        root = self.folder / ("{node}" if len(nodes) > 1 else nodes[0])
        started = await self.talker(
            f"driver-{name}", *program, "-driver", name, *chosen, "-root", str(root), "-cdi", str(self.cdi), *options
        )
        await started.says("registered", times=len(nodes))
        return started

    def at_end(self, act: Callable[[], None]) -> None:
        """Has something done when all processes have ended."""
        self._endings.append(act)

    async def close(self) -> None:
        for talker in self._talkers:
            await talker.kill()
        for act in self._endings:
            act()

    # What a test waits for

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits until something holds, which is best a function whose name says what."""
        await patience.until_async(holds, what=getattr(holds, "__qualname__", repr(holds)))

    async def node_is_ready(self, name: str) -> None:
        """Waits until a node is ready, and drivers can register there."""

        async def look() -> tuple[list[tuple[str, str]], bool]:
            registered = await self.find(node.Node, name)
            conditions = registered.status.conditions if registered is not None else ()
            return [(each.type, each.status) for each in conditions], (self.root(name) / "plugins_registry").exists()

        await patience.until_async(
            look, lambda seen: ("Ready", "True") in seen[0] and seen[1], what=f"node {name} is ready"
        )

    async def pod_is(self, name: str, phase: str, *, namespace: str = "default") -> dict[str, Any]:
        """Waits until a pod is in a phase; its status."""

        async def status() -> dict[str, Any]:
            document = await self.client.get_document(pod.Pod, name, namespace=namespace)
            return dict(document["status"])

        return await patience.until_async(
            status, lambda seen: seen.get("phase") == phase, what=f"pod {namespace}/{name} is {phase}"
        )

    async def device_health(self, name: str, health: str) -> None:
        """Waits until the status of a pod says this of all devices of its containers."""

        async def seen() -> set[str]:
            status = (await self.client.get_document(pod.Pod, name, namespace="default"))["status"]
            entries = [
                entry for each in status["containerStatuses"] for entry in each.get("allocatedResourcesStatus", ())
            ]
            return {resource["health"] for entry in entries for resource in entry["resources"]}

        await patience.until_async(seen, lambda states: states == {health}, what=f"devices of pod {name} are {health}")

    async def pod_goes(self, name: str, *, namespace: str = "default", grace: int | None = None) -> None:
        """Deletes a pod, and waits until it is gone."""
        await self.client.delete(pod.Pod, name, namespace=namespace, grace_period_seconds=grace)

        await patience.until_async(
            lambda: self.find(pod.Pod, name, namespace), lambda seen: seen is None, what=f"pod {namespace}/{name} goes"
        )

    async def event_says(self, reason: str, about: str) -> str:
        """Waits until there is an event of a reason about an object; its message."""

        async def events() -> list[tuple[str, str]]:
            everything = await self.all_of(event.Event)
            return [(each.reason, each.message) for each in everything if each.involved_object.name == about]

        seen = await patience.until_async(events, lambda seen: reason in dict(seen), what=f"event {reason} of {about}")
        return dict(seen)[reason]


@contextlib.contextmanager
def control_plane(*options: str, nodes: Sequence[str] = ()) -> Iterator[processes.Process]:
    """``drachma up``, which knows the tokens of these nodes; in a short folder, for sockets have short names."""
    with tempfile.TemporaryDirectory(prefix="dr") as folder:
        path = pathlib.Path(folder)
        tokens = path / "tokens"
        lines = [f'{_TOKEN.format(name=name)},system:node:{name},{name},"system:nodes"' for name in nodes]
        tokens.write_text("\n".join(lines))
        own = ("--token-auth-file", str(tokens), *(part.format(folder=folder) for part in options))
        with processes.running(path / "data", command_name="up", options=own) as server:
            yield server


@contextlib.asynccontextmanager
async def connected(server: processes.Process) -> AsyncIterator[NodeCluster]:
    """What a test does with a control plane; the agents and drivers that it starts end with it."""
    access = http.find_access(server.kubeconfig)
    async with http.HttpClient(access, clock=clock.SystemClock(), manager="test") as client:
        cluster = NodeCluster(client, server, server.folder.parent)
        try:
            yield cluster
        finally:
            await cluster.close()


def devices(driver: str, *, namespace: str = "default") -> str:
    """A class of a driver's devices and a template for one of them, both by the driver's name."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {driver}}}
spec: {{selectors: [{{cel: {{expression: device.driver == "{driver}"}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {driver}, namespace: {namespace}}}
spec: {{spec: {{devices: {{requests: [{{name: one, exactly: {{deviceClassName: {driver}}}}}]}}}}}}
"""


def workload(name: str, claim: str, *, namespace: str = "default", spec: str = "") -> str:
    """A pod with one container that uses a claim, which is said as the pod's spec says it."""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  containers: [{{name: main, image: busybox, resources: {{claims: [{{name: device}}]}}}}]
  resourceClaims: [{{name: device, {claim}}}]
  {spec}
"""
