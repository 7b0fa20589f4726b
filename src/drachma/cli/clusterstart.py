"""The start of a cluster by ``drachma up``: its folder, its address, its entry in the kubeconfig, and the banner."""

from __future__ import annotations

import asyncio
import collections
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import typer

from drachma import errors
from drachma.api import node, resourceslice
from drachma.cli import options
from drachma.client import local
from drachma.listening import addresses
from drachma.node.simulation.hardware import Hardware
from drachma.process import hosting, kubeconfigentry, localcluster
from drachma.server import inprocess

_NODES_SECONDS: Final = 30.0
"""Time that simulated nodes have to become ready before the banner says that they are not."""

_DETACH_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1
_LOG_LINES: Final = 12


class ClusterStart(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one start."""

    name: str
    data: pathlib.Path | None
    is_in_memory: bool
    kubeconfig_out: pathlib.Path | None
    merges_kubeconfig: bool
    hardware: Hardware | None
    profile: str
    dashboard_url: Callable[[], str] = lambda: ""
    """Returns the address of the dashboard once it is served; empty without one."""

    @property
    def folder(self) -> pathlib.Path:
        """Folder of the record, and of the objects unless they are kept in memory."""
        return localcluster.folder(self.name, self.data)

    def refuse_second(self) -> None:
        """Raise InvalidValueError if the cluster runs already, or if its options contradict each other."""
        if self.is_in_memory and self.data is not None:
            raise errors.InvalidValueError(f"--memory: contradicts --data {self.data}: leave one of them out")
        record = localcluster.read(self.folder)
        if record is not None and record.is_running:
            raise errors.InvalidValueError(
                f"cluster {record.name} is already running on {record.server} (process {record.process}): "
                "stop it with drachma down, or choose another --name"
            )
        if self.merges_kubeconfig:
            # A file that cannot be changed is reported before the cluster starts.
            self._kubeconfig()

    def free_address(self) -> str:
        """Return the address of the last start if it is free, or the default address, or any free port."""
        record = localcluster.read(self.folder)
        last = record.server.rpartition("/")[2] if record is not None else ""
        for address in filter(None, (last, options.DEFAULT_LISTEN)):
            try:
                opened, _ = addresses.bind(addresses.Address.parse(address))
            except errors.InvalidValueError:
                continue
            opened.close()
            return address
        return "127.0.0.1:0"

    async def announce(self, host: hosting.Host) -> None:
        """Write the kubeconfig and the record, wait for the simulated nodes, and print the banner."""
        context = localcluster.context_name(self.name)
        kubeconfig, previous = self.kubeconfig_out, ""
        if self.merges_kubeconfig:
            kubeconfig = self._kubeconfig()
            previous = kubeconfigentry.merge(
                kubeconfig, context, server=host.url, authority=host.authority, token=host.token
            )
            if previous == context:
                # The last run was not ended by drachma down.
                earlier = localcluster.read(self.folder)
                previous = earlier.previous_context if earlier is not None else ""
        machines = self.hardware.machines if self.hardware is not None else ()
        is_ready = await _wait_for_nodes(host, self.hardware) if self.hardware is not None else True
        record = localcluster.Record(
            name=self.name,
            process=os.getpid(),
            process_started=localcluster.process_start(os.getpid()),
            server=host.url,
            context=context if self.merges_kubeconfig else "",
            kubeconfig=str(kubeconfig.absolute()) if kubeconfig is not None else "",
            previous_context=previous,
            data="" if self.is_in_memory else str(self.folder.absolute()),
            nodes=len(machines),
            profile=self.profile,
            devices=_count_devices(self.hardware),
            dashboard=self.dashboard_url(),
        )
        localcluster.write(self.folder, record)
        for line in banner_lines(record, address=host.addresses_text, is_ready=is_ready):
            typer.echo(line)

    def run_detached(self) -> None:
        """Start the same command in the background, and print its banner once it is ready.

        Raises:
            errors.UnreachableError: the cluster does not start; the message has the end of its log.
        """
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / localcluster.LOG
        arguments = [each for each in sys.argv[1:] if each != "--detach"]
        log.touch(mode=0o600)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "drachma", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _DETACH_SECONDS
        while True:
            record = localcluster.read(folder)
            if record is not None and record.process == process.pid:
                break
            if process.poll() is not None or time.monotonic() > deadline:
                process.terminate()
                lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
                raise errors.UnreachableError(
                    f"cluster {self.name}: did not start; {log} ends with:\n" + "\n".join(lines)
                )
            time.sleep(_POLL_SECONDS)
        for line in banner_lines(record, address=record.server, log=log):
            typer.echo(line)

    def _kubeconfig(self) -> pathlib.Path:
        context = localcluster.context_name(self.name)
        return kubeconfigentry.choose_file(context, environment=os.environ, home=pathlib.Path.home())


async def _wait_for_nodes(host: hosting.Host, hardware: Hardware) -> bool:
    """Wait until the simulated nodes and their slices are there. Return False if that takes too long."""
    names = {each.name for each in hardware.machines}
    slices = len(hardware.all_slices)
    try:
        async with (
            asyncio.timeout(_NODES_SECONDS),
            local.LocalClient(inprocess.InProcess(host.application.dispatcher)) as client,
        ):
            while True:
                ready = {each.metadata.name for each in (await client.list(node.Node)).items if _is_ready(each)}
                if names <= ready and len((await client.list(resourceslice.ResourceSlice)).items) >= slices:
                    return True
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        return False


def _is_ready(each: node.Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in each.status.conditions)


def _count_devices(hardware: Hardware | None) -> dict[str, int]:
    """Return the number of devices of each driver."""
    counts = collections.Counter[str]()
    for each in hardware.all_slices if hardware is not None else ():
        counts[str(each["spec"]["driver"])] += len(each["spec"].get("devices") or ())
    return dict(sorted(counts.items()))


def banner_lines(
    record: localcluster.Record, *, address: str, is_ready: bool = True, log: pathlib.Path | None = None
) -> Iterator[str]:
    """Yield the lines that end the start of a cluster."""
    yield f"Cluster {record.name} is up, serving on {address}"
    yield ""
    if record.context:
        yield f"  context    {record.context}, now current in {shorten(record.kubeconfig)}"
    elif record.kubeconfig:
        yield f"  kubeconfig {shorten(record.kubeconfig)}"
    if record.nodes:
        state = "ready" if is_ready else "not ready yet"
        yield f"  nodes      {record.nodes} simulated ({record.profile}), {state}"
        devices = ", ".join(f"{count} {driver}" for driver, count in record.devices.items())
        yield f"  devices    {devices or 'none'}"
    else:
        yield "  nodes      none"
    if record.dashboard:
        yield f"  dashboard  {record.dashboard}"
    yield f"  data       {shorten(record.data) if record.data else 'in memory, gone when the cluster stops'}"
    if log is not None:
        yield f"  log        {shorten(str(log))}"
    option = f" --kubeconfig {shorten(record.kubeconfig)}" if record.kubeconfig and not record.context else ""
    name = f" --name {record.name}" if record.name != localcluster.DEFAULT_NAME else ""
    yield ""
    yield "Next, in this terminal:" if log is not None else "Next, in another terminal:"
    yield f"  drachma example first-steps | drachma apply{option} -f -"
    yield f"  drachma get pods{option}"
    yield f"  drachma explain pod giant{option}"
    yield ""
    yield f"drachma down{name} stops the cluster." if log is not None else "Ctrl-C stops the cluster."


def shorten(path: str) -> str:
    """Return a path with the home directory of the user as ``~``."""
    home = str(pathlib.Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
