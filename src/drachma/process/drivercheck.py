"""A driver under test, with all that it needs around it: an API server, a node, directories.

``drachma driver check`` is made of it. A driver that a command starts gets an API server of its own, which is gone
afterwards, through something that has requests fail; one that runs already is called on its socket, and uses the API
server that it has.
"""

from __future__ import annotations

import asyncio
import pathlib
import shlex
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

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
from drachma.server.wire import serving

NODE: Final = "driver-check"
_PLACEHOLDERS: Final = "{node} {kubeconfig} {root} {plugins} {registry} {cdi}"


class RunningDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A driver that runs already: its registration socket, its node, its CDI files, and the API server it uses."""

    socket: pathlib.Path
    kubeconfig: pathlib.Path | None
    node: str
    cdi: pathlib.Path


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
    async with http.HttpClient(reached, time=clock.SystemClock(), manager="drachma-driver-check") as client:
        stage = Stage(
            client,
            subject.RunningSubject(),
            node=driver.node,
            registration=lambda: driver.socket if driver.socket.exists() else None,
            cdi=driver.cdi,
        )
        return await checks.run(stage, chosen)


def check_command(command: Sequence[str], chosen: Sequence[Check] = checks.ALL) -> report.Report:
    """Starts a driver beside an API server of its own, and tries all rules on it.

    In the command, ``{node}`` and so on stand for what is different each time; the environment says the same.
    """
    made: list[report.Report] = []
    with tempfile.TemporaryDirectory(prefix="dc") as name:
        folder = pathlib.Path(name)
        kubeconfig = folder / "kubeconfig"

        async def beside(host: hosting.Host) -> None:
            host.ready()
            await _written(kubeconfig)
            made.append(await _check(command, folder, http.find_access(kubeconfig), chosen))

        options = hosting.Options(
            address=serving.Address.parse("127.0.0.1:0"),
            kubeconfig_out=kubeconfig,
            disabled_plugins=("ServiceAccount", "TaintNodesByCondition"),
        )
        hosting.run(options, beside)
    return made[0]


async def _written(path: pathlib.Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def _check(
    command: Sequence[str], folder: pathlib.Path, reached: access.Access, chosen: Sequence[Check]
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
    async with (
        http.HttpClient(reached, time=clock.SystemClock(), manager="drachma-driver-check") as client,
        faultyproxy.serving(reached, faults) as url,
    ):
        faultyproxy.write_kubeconfig(kubeconfig, url)
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        await client.create_document(node.Node, document)
        # A node that can do everything: otherwise some devices could not be published for it.
        declared = {"declaredFeatures": [Gate.NODE_ALLOCATABLE_RESOURCES]}
        await client.patch(node.Node, NODE, patch=patches.merge({"status": declared}), subresource="status")
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
