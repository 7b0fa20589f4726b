"""Handlers of probes and lifecycle hooks: commands in a container, HTTP requests, TCP connections, gRPC checks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Sequence
from typing import Final

import aiohttp
import grpc

from drachma.api.pod import ContainerPort
from drachma.node.podview.containers import GrpcAction, HttpGetAction, LifecycleHandler, Probe, TcpSocketAction
from drachma.node.runtimes import protocol
from drachma.runtime.clock import Clock

_LOCALHOST: Final = "127.0.0.1"
_MOST_OUTPUT: Final = 10 * 1024
_CHECK: Final = "/grpc.health.v1.Health/Check"
_SERVING: Final = b"\x08\x01"


async def run_probe(probe: Probe, container: protocol.Container, ports: Sequence[ContainerPort]) -> str | None:
    """Run a probe once, within its timeout. Return None if it succeeds, or the problem."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            if probe.exec is not None:
                return await _execute(probe.exec.command, container)
            if probe.http_get is not None:
                return await _get(probe.http_get, ports)
            if probe.tcp_socket is not None:
                return await _connect(probe.tcp_socket, ports)
            if probe.grpc is not None:
                return await _check(probe.grpc)
    except TimeoutError:
        problem = "command timed out" if probe.exec is not None else "context deadline exceeded"
        return f"{problem}: no answer after {probe.timeout_seconds}s"
    return "missing probe handler"


async def _execute(words: Sequence[str], container: protocol.Container) -> str | None:
    try:
        session = await container.execute(protocol.Command(words=words))
    except protocol.StreamError as error:
        return str(error)
    output = b""
    try:
        async for _, data in session.output():
            output = (output + data)[:_MOST_OUTPUT]
        exit_ = await session.wait()
    finally:
        await session.close()
    return None if exit_.code == 0 else output.decode(errors="replace")


async def _get(action: HttpGetAction, ports: Sequence[ContainerPort]) -> str | None:
    number = _port(action.port, ports)
    if number is None:
        return f"couldn't find port: {action.port}"
    scheme = (action.scheme or "http").lower()
    url = f"{scheme}://{action.host or _LOCALHOST}:{number}/{action.path.lstrip('/')}"
    headers = {
        "User-Agent": "kube-probe/1.37",
        "Accept": "*/*",
        **{each.name: each.value for each in action.http_headers},
    }
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=unverified, allow_redirects=False) as response,
        ):
            is_good = 200 <= response.status < 400
            return None if is_good else f"HTTP probe failed with statuscode: {response.status}"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f'Get "{url}": {_problem(error, action.host or _LOCALHOST, number)}'


async def _connect(action: TcpSocketAction, ports: Sequence[ContainerPort]) -> str | None:
    number, host = _port(action.port, ports), action.host or _LOCALHOST
    if number is None:
        return f"couldn't find port: {action.port}"
    try:
        _, writer = await asyncio.open_connection(host, number)
    except OSError as error:
        return _problem(error, host, number)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None


async def _check(action: GrpcAction) -> str | None:
    service = action.service.encode()
    request = b"\n" + bytes([len(service)]) + service if 0 < len(service) < 128 else b""
    async with grpc.aio.insecure_channel(f"{_LOCALHOST}:{action.port}") as channel:
        try:
            answer: bytes = await channel.unary_unary(_CHECK, bytes, bytes)(request)
        except grpc.aio.AioRpcError as error:
            return f"service unhealthy: {error.details()}"
    return None if answer == _SERVING else "service unhealthy: it does not answer SERVING"


def _port(port: int | str, ports: Sequence[ContainerPort]) -> int | None:
    if isinstance(port, int):
        return port
    number = next((each.container_port for each in ports if each.name == port), None)
    return number if number is not None else int(port) if port.isascii() and port.isdigit() else None


def _problem(error: Exception, host: str, port: int) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    number = getattr(cause, "errno", None)
    return f"dial tcp {host}:{port}: connect: {os.strerror(number).lower()}" if number else str(error)


async def run_hook(
    hook: LifecycleHandler,
    container: protocol.Container,
    *,
    ports: Sequence[ContainerPort],
    seconds: float,
    clock: Clock,
) -> str | None:
    """Run a lifecycle hook within a timeout. Return None if it succeeds, or the problem."""
    if hook.sleep is not None:
        end = asyncio.create_task(container.wait())
        pause = asyncio.create_task(clock.sleep(min(hook.sleep.seconds, seconds)))
        await asyncio.wait((end, pause), return_when=asyncio.FIRST_COMPLETED)
        for task in (end, pause):
            task.cancel()
        await asyncio.gather(end, pause, return_exceptions=True)
        return None
    probe = Probe(exec=hook.exec, http_get=hook.http_get, timeout_seconds=max(1, round(seconds)))
    return await run_probe(probe, container, ports)
