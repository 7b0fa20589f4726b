"""A driver under test, with all that it needs around it: an API server, a node, directories.

``drachma driver check`` is made of it. A driver that a command starts gets an API server of its own, which is gone
afterwards, through something that has requests fail; one that somebody else starts with the kubeconfig that he is told
gets the same, or his own API server through it; one that runs already is called on its socket, and uses the API server
that it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from drachma import errors
from drachma.api import node
from drachma.api.gates import Gate
from drachma.client import access, http, patches
from drachma.driver.conformance import checks, report, subject
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.driver.conformance.check import Check
from drachma.driver.conformance.stage import Stage
from drachma.process import faultyproxy, hosting
from drachma.runtime import clock
from drachma.server.pipeline import phases
from drachma.server.wire import serving

NODE: Final = "driver-check"
_MANAGER: Final = "drachma-driver-check"
_PLACEHOLDERS: Final = "{node} {kubeconfig} {root} {plugins} {registry} {cdi}"

_Checking: TypeAlias = Callable[[access.Access, http.HttpClient], Awaitable[report.Report]]
"""A check of a driver with an API server, and a client of it that is nobody's but the check's."""


class RunningDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A driver that somebody else runs: its registration socket, its node, its CDI files, and its API server."""

    socket: pathlib.Path
    kubeconfig: pathlib.Path | None
    node: str
    cdi: pathlib.Path
    subject: subject.Subject = subject.RunningSubject()
    """How it is started, stopped and killed, where that can be done."""


def command_of_module(name: str) -> list[str]:
    """The command that runs the driver of a Python module: ``module:Class``, or a module that is a program."""
    module, separator, attribute = name.partition(":")
    if not separator:
        return [sys.executable, "-m", module]
    program = f"import {module} as m\nfrom drachma import driver\ndriver.main(m.{attribute})"
    return [sys.executable, "-c", program]


async def check_running(driver: RunningDriver, chosen: Sequence[Check] = checks.ALL) -> report.Report:
    """Tries the rules that can be tried on a driver of somebody else's."""
    reached = http.find_access(driver.kubeconfig)
    async with http.HttpClient(reached, time=clock.SystemClock(), manager=_MANAGER) as client:
        return await checks.run(_stage(client, driver, None), chosen)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where a driver that somebody else starts is to find its API server; ``kubeconfig`` is the file that tells it."""

    address: serving.Address
    kubeconfig: pathlib.Path


def check_listening(
    driver: RunningDriver,
    listening: Listening,
    chosen: Sequence[Check] = checks.ALL,
    *,
    told: Callable[[], None],
) -> report.Report:
    """Tries rules on a driver that somebody else starts when ``told`` was called: then its kubeconfig is there.

    What the driver asks goes to its cluster, or, where it names none, to an API server that has its node and nothing
    else, and is gone afterwards.

    Raises:
        errors.DriverError: the address cannot be listened on, or the file cannot be written.
    """

    async def check(reached: access.Access, client: http.HttpClient) -> report.Report:
        faults = ApiFaults()
        async with contextlib.AsyncExitStack() as stack:
            try:
                serves = faultyproxy.serving(reached, faults, address=listening.address)
                faultyproxy.write_kubeconfig(listening.kubeconfig, await stack.enter_async_context(serves))
            except OSError as error:
                raise errors.DriverError(f"driver check: {error}") from error
            told()
            if not driver.subject.can_restart:
                await _there(driver.socket)
            return await checks.run(_stage(client, driver, faults), chosen)

    async def check_cluster() -> report.Report:
        reached = http.find_access(driver.kubeconfig)
        async with http.HttpClient(reached, time=clock.SystemClock(), manager=_MANAGER) as client:
            return await check(reached, client)

    if driver.kubeconfig is not None:
        return asyncio.run(check_cluster())
    with tempfile.TemporaryDirectory(prefix="dc") as folder:
        return _beside_server(pathlib.Path(folder), driver.node, check)


def _stage(client: http.HttpClient, driver: RunningDriver, faults: ApiFaults | None) -> Stage:
    return Stage(
        client,
        driver.subject,
        node=driver.node,
        registration=lambda: driver.socket if driver.socket.exists() else None,
        cdi=driver.cdi,
        faults=faults,
    )


def check_command(command: Sequence[str], chosen: Sequence[Check] = checks.ALL) -> report.Report:
    """Starts a driver beside an API server of its own, and tries all rules on it.

    In the command, ``{node}`` and so on stand for what is different each time; the environment says the same.
    """
    with tempfile.TemporaryDirectory(prefix="dc") as name:
        folder = pathlib.Path(name)

        async def check(reached: access.Access, client: http.HttpClient) -> report.Report:
            return await _check(command, folder, reached, client, chosen)

        return _beside_server(folder, NODE, check)


def _beside_server(folder: pathlib.Path, node_name: str, check: _Checking) -> report.Report:
    """What a check gives that has an API server with one node to itself."""
    made: list[report.Report] = []
    kubeconfig = folder / "kubeconfig"

    async def beside(host: hosting.Host) -> None:
        host.ready()
        await _there(kubeconfig)
        reached = http.find_access(kubeconfig)
        async with http.HttpClient(reached, time=clock.SystemClock(), manager=_MANAGER) as client:
            document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name}}
            await client.create_document(node.Node, document)
            # A node that can do everything: otherwise some devices could not be published for it.
            declared = {"declaredFeatures": [Gate.NODE_ALLOCATABLE_RESOURCES]}
            await client.patch(node.Node, node_name, patch=patches.merge({"status": declared}), subresource="status")
            made.append(await check(reached, client))

    options = hosting.Options(
        address=serving.Address.parse("127.0.0.1:0"),
        kubeconfig_out=kubeconfig,
        disabled_plugins=phases.PLUGINS,
    )
    hosting.run(options, beside)
    return made[0]


async def _there(path: pathlib.Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def _check(
    command: Sequence[str],
    folder: pathlib.Path,
    reached: access.Access,
    client: http.HttpClient,
    chosen: Sequence[Check],
) -> report.Report:
    root, kubeconfig = folder / "k", folder / "driver-kubeconfig"
    places = {
        "node": NODE,
        "kubeconfig": str(kubeconfig),
        "root": str(root),
        "plugins": str(root / "plugins"),
        "registry": str(root / "plugins_registry"),
        "cdi": str(folder / "cdi"),
    }
    registry, cdi = pathlib.Path(places["registry"]), pathlib.Path(places["cdi"])
    for path in (registry, pathlib.Path(places["plugins"]), cdi):
        path.mkdir(parents=True)
    environment = {
        "NODE_NAME": NODE,
        "KUBECONFIG": str(kubeconfig),
        "KUBELET_ROOT": str(root),
        "CDI_ROOT": str(cdi),
    }
    faults = ApiFaults()
    async with faultyproxy.serving(reached, faults) as url:
        faultyproxy.write_kubeconfig(kubeconfig, url)
        stage = Stage(
            client,
            subject.ProcessSubject([_filled(part, places) for part in command], environment, output=folder / "output"),
            node=NODE,
            registration=lambda: next((path for path in sorted(registry.iterdir()) if path.is_socket()), None),
            cdi=cdi,
            faults=faults,
        )
        return await checks.run(stage, chosen)


def _filled(part: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def parse_command(text: str) -> list[str]:
    """A command as a shell would take it apart.

    Raises:
        errors.InvalidValueError: it is none.
    """
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise errors.InvalidValueError(f"command {text!r}: {error}") from None
    if not parts:
        raise errors.InvalidValueError(f"command {text!r}: is empty; it may have {_PLACEHOLDERS}")
    return parts
