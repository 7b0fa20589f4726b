"""kubectl's logs, commands and ports, through drachma's API server to a real kubelet."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from tests import kubectlprogram
from tests.peers import agents, programs
from tests.scenarios import nodecluster, processes

PATIENCE_SECONDS = 90.0

POD = """
apiVersion: v1
kind: Pod
metadata: {name: echo}
spec:
  automountServiceAccountToken: false
  containers: [{name: main, image: i, stdin: true}]
"""


@pytest.fixture
def server() -> Iterator[processes.Process]:
    for name in ("runtime", "kubelet"):
        try:
            programs.build(name)
        except programs.MissingError as missing:
            pytest.skip(str(missing))
    if os.geteuid() != 0:
        pytest.skip("a kubelet runs as root only")
    bootstrap = ("--bootstrap-kubeconfig-out", f"{{folder}}/{agents.BOOTSTRAP}")
    with nodecluster.control_plane(*bootstrap) as started:
        yield started


class Kubectl:
    """kubectl as the administrator of a cluster."""

    def __init__(self, server: processes.Process) -> None:
        self._words = [str(kubectlprogram.find())]
        self._environment = {"KUBECONFIG": str(server.kubeconfig), "HOME": str(server.folder), "PATH": "/usr/bin:/bin"}

    async def run(self, *words: str, stdin: str | None = None) -> tuple[int, str]:
        """Its exit code and all that it said."""
        done = await asyncio.to_thread(
            subprocess.run,
            [*self._words, *words],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    @contextlib.asynccontextmanager
    async def forwarding(self, pod: str, port: int) -> AsyncIterator[int]:
        """The local port that leads to one of a pod."""
        process = await asyncio.create_subprocess_exec(
            *self._words, "port-forward", pod, f":{port}", stdout=asyncio.subprocess.PIPE, env=self._environment
        )
        try:
            assert process.stdout is not None, "it is piped"
            async with asyncio.timeout(PATIENCE_SECONDS):
                line = (await process.stdout.readline()).decode()
            yield int(line.partition(" -> ")[0].rpartition(":")[2])
        finally:
            process.kill()
            await process.wait()


async def _spoken(port: int, text: str) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text.encode())
        writer.write_eof()
        answer = (await reader.read()).decode()
        writer.close()
    return answer


async def test_streams_reach_a_kubelet_and_come_back_unchanged(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await agents.Kubelet(cluster, "worker").start()
        await cluster.apply(POD)
        await cluster.pod_is("echo", "Running")
        kubectl = Kubectl(server)

        async def listens() -> bool:
            return await kubectl.run("get", "--raw", "/api/v1/nodes/worker/proxy/healthz") == (0, "ok")

        await cluster.until(listens)
        await _logs(kubectl)
        await _commands(kubectl)
        async with kubectl.forwarding("echo", 8080) as port:
            assert await _spoken(port, "hello\n") == "port 8080\nhello\n"
        await cluster.pod_goes("echo", grace=1)


async def _logs(kubectl: Kubectl) -> None:
    assert await kubectl.run("logs", "echo") == (0, "container main begins\n")
    code, said = await kubectl.run("logs", "echo", "--previous")
    assert code == 1
    assert 'previous terminated container "main" in pod "echo" not found' in said


async def _commands(kubectl: Kubectl) -> None:
    assert await kubectl.run("exec", "echo", "--", "two", "words") == (0, "two words\n")
    assert await kubectl.run("exec", "-i", "echo", "--", "say", stdin="more\n") == (0, "say\nmore\n")
    assert await kubectl.run("exec", "echo", "--", "exit", "7") == (7, "command terminated with exit code 7\n")
    code, said = await kubectl.run("attach", "-i", "echo", stdin="more\n")
    assert (code, "attached\nmore\n" in said) == (0, True)
