"""The environment of a driver under test: an API server, a node, directories; for ``drachma driver check``.

A driver that the check starts gets a temporary API server, through a proxy that can make requests fail. A driver that
the user starts with a given kubeconfig gets the same, or the user's own API server through the proxy. A driver that is
already running is called on its socket and keeps its API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma import errors
from drachma.api import node
from drachma.api.gates import Gate
from drachma.client import access, http, patches
from drachma.driver.conformance import checks, report, subject
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.driver.conformance.check import Check
from drachma.driver.conformance.stage import Stage
from drachma.listening import addresses
from drachma.process import faultyproxy, hosting
from drachma.runtime import clock
from drachma.server.admission import pluginnames

NODE: Final = "driver-check"
_MANAGER: Final = "drachma-driver-check"
_PLACEHOLDERS: Final = "{node} {kubeconfig} {root} {plugins} {registry} {cdi}"

_Checking: TypeAlias = Callable[[access.Access, http.HttpClient], Awaitable[report.Report]]
"""Check of a driver on an API server, with a client of its own."""


class RunningDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A driver that the user runs: its registration socket, its node, its CDI files, and its API server."""

    socket: pathlib.Path
    kubeconfig: pathlib.Path | None
    node: str
    cdi: pathlib.Path
    subject: subject.Subject = subject.RunningSubject()
    """Commands that start, stop and kill it, if there are any."""
    admin_parameters: Any = None
    """Parameters that it takes from classes only, if it has such."""


def command_of_module(name: str) -> list[str]:
    """Return the command that runs the driver of a Python module: ``module:Class``, or a module to run."""
    module, separator, attribute = name.partition(":")
    if not separator:
        return [sys.executable, "-m", module]
    program = f"import {module} as m\nfrom drachma import driver\ndriver.main(m.{attribute})"
    return [sys.executable, "-c", program]


async def check_running(driver: RunningDriver, rules: Sequence[Check] = checks.ALL) -> report.Report:
    """Check the rules that can be checked on a driver that the user runs."""
    apiserver = http.find_access(driver.kubeconfig)
    async with http.HttpClient(apiserver, clock=clock.SystemClock(), manager=_MANAGER) as client:
        return await checks.run(_stage(client, driver, None), rules)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Address of the API server for a driver that the user starts, and the kubeconfig file that is written for it."""

    address: addresses.Address
    kubeconfig: pathlib.Path


def check_listening(
    driver: RunningDriver,
    listening: Listening,
    rules: Sequence[Check] = checks.ALL,
    *,
    announce: Callable[[], None],
) -> report.Report:
    """Check rules on a driver that the user starts after ``announce`` was called, when its kubeconfig is written.

    Requests of the driver go to its cluster, or without a kubeconfig to a temporary API server that has only its node.

    Raises:
        errors.DriverError: the address cannot be bound, or the file cannot be written.
    """

    async def check(apiserver: access.Access, client: http.HttpClient) -> report.Report:
        faults = ApiFaults()
        async with contextlib.AsyncExitStack() as stack:
            try:
                serves = faultyproxy.serving(apiserver, faults, address=listening.address)
                faultyproxy.write_kubeconfig(listening.kubeconfig, await stack.enter_async_context(serves))
            except OSError as error:
                raise errors.DriverError(f"driver check: {error}") from error
            announce()
            if not driver.subject.can_restart:
                await _wait_for(driver.socket)
            return await checks.run(_stage(client, driver, faults), rules)

    async def check_cluster() -> report.Report:
        apiserver = http.find_access(driver.kubeconfig)
        async with http.HttpClient(apiserver, clock=clock.SystemClock(), manager=_MANAGER) as client:
            return await check(apiserver, client)

    if driver.kubeconfig is not None:
        return asyncio.run(check_cluster())
    with tempfile.TemporaryDirectory(prefix="dc") as folder:
        return _run_with_server(pathlib.Path(folder), driver.node, check)


def _stage(client: http.HttpClient, driver: RunningDriver, faults: ApiFaults | None) -> Stage:
    return Stage(
        client,
        driver.subject,
        node=driver.node,
        registration=lambda: driver.socket if driver.socket.exists() else None,
        cdi=driver.cdi,
        faults=faults,
        admin_parameters=driver.admin_parameters,
    )


def check_command(
    command: Sequence[str], rules: Sequence[Check] = checks.ALL, *, admin_parameters: Any = None
) -> report.Report:
    """Start a driver with a temporary API server, and check rules on it.

    ``admin_parameters`` are parameters that the driver takes from classes only, if it has such. Placeholders in the
    command, such as ``{node}``, are replaced; the environment has the same values.
    """
    with tempfile.TemporaryDirectory(prefix="dc") as name:
        folder = pathlib.Path(name)

        async def check(apiserver: access.Access, client: http.HttpClient) -> report.Report:
            return await _check(command, folder, apiserver, client, rules, admin_parameters)

        return _run_with_server(folder, NODE, check)


def _run_with_server(folder: pathlib.Path, node_name: str, check: _Checking) -> report.Report:
    """Return the report of a check that runs with a temporary API server with one node.

    Raises:
        KeyboardInterrupt: a signal ended the check.
    """
    reports: list[report.Report] = []
    kubeconfig = folder / "kubeconfig"

    async def run_check(host: hosting.Host) -> None:
        host.ready()
        await _wait_for(kubeconfig)
        apiserver = http.find_access(kubeconfig)
        async with http.HttpClient(apiserver, clock=clock.SystemClock(), manager=_MANAGER) as client:
            document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name}}
            await client.create_document(node.Node, document)
            # The node declares every feature, so that all devices can be published for it.
            declared = {"declaredFeatures": [Gate.NODE_ALLOCATABLE_RESOURCES]}
            await client.patch(node.Node, node_name, patch=patches.merge({"status": declared}), subresource="status")
            reports.append(await check(apiserver, client))

    options = hosting.Options(
        address=addresses.Address.parse("127.0.0.1:0"),
        kubeconfig_out=kubeconfig,
        disabled_plugins=pluginnames.PLUGINS,
    )
    hosting.run(options, run_check)
    if not reports:
        raise KeyboardInterrupt
    return reports[0]


async def _wait_for(path: pathlib.Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def _check(
    command: Sequence[str],
    folder: pathlib.Path,
    apiserver: access.Access,
    client: http.HttpClient,
    rules: Sequence[Check],
    admin_parameters: Any,
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
    async with faultyproxy.serving(apiserver, faults) as url:
        faultyproxy.write_kubeconfig(kubeconfig, url)
        stage = Stage(
            client,
            subject.ProcessSubject([_fill(part, places) for part in command], environment, output=folder / "output"),
            node=NODE,
            registration=lambda: next((path for path in sorted(registry.iterdir()) if path.is_socket()), None),
            cdi=cdi,
            faults=faults,
            admin_parameters=admin_parameters,
        )
        return await checks.run(stage, rules)


def _fill(part: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def parse_command(text: str) -> list[str]:
    """Return the words of a command, split as a shell does. Raises errors.InvalidValueError."""
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise errors.InvalidValueError(f"command {text!r}: {error}") from None
    if not parts:
        raise errors.InvalidValueError(f"command {text!r}: is empty; it may contain {_PLACEHOLDERS}")
    return parts
