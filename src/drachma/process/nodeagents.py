"""The agents of nodes as components: simulated machines beside a control plane, or the machine of this process.

Here is chosen what runs their containers, and where API servers find them.
"""

from __future__ import annotations

import pathlib
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.api import codec
from drachma.node import agent, hardware, localprovisioner, nodeagent, simulatedcdi
from drachma.node.directories import Directories
from drachma.node.endpoint import addresses, certificate, server
from drachma.node.runtimes import podman, process, protocol, simulated
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.nodewire.cdi import registry
from drachma.process.components import Run
from drachma.runtime import Surroundings, controller
from drachma.server.wire import nodeconnections
from drachma.simulate import NodeGroup
from drachma.simulate.autoscaler import Autoscaler, Settings
from drachma.simulate.autoscaler.machineprovider import MachineProvider

_ADMIN: Final = "kubernetes-admin"
"""Who lets nodes come and go: that is not for controllers or nodes to do."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are served: whose certificates clients may show, what runs containers, and where it keeps files."""

    client_authority: bytes
    apiserver: str
    """The URL at which pods reach the API server."""
    root: pathlib.Path
    runtime: RuntimeName = RuntimeName.SIMULATED
    serving_files: tuple[pathlib.Path, pathlib.Path] | None = None
    """Certificate to serve with, and its key; without them one is made that signs itself."""
    local_endpoints: nodeconnections.LocalEndpoints | None = None
    """Endpoints that an API server in this process may dial although they are at loopback addresses."""
    cdi: tuple[pathlib.Path, ...] = ()
    """Where CDI files are beside the usual places."""
    allows_unenforced_security: bool = False
    """That containers run whose security context the runtime cannot enforce in full."""

    @property
    def files(self) -> nodeagent.PodFiles:
        """Where pods have their volumes, and how."""
        return nodeagent.PodFiles(
            self.root / "pods", _environment(self.apiserver), allows_unenforced=self.allows_unenforced_security
        )


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """That there are more and fewer simulated machines as pods need: of which sorts, and how."""

    groups: tuple[NodeGroup, ...]
    settings: Settings

    @property
    def slices(self) -> list[dict[str, Any]]:
        """What one machine of each sort publishes."""
        return [codec.encode(each) for group in self.groups for each in group.slices]


def simulated_machines(
    surroundings: Surroundings,
    machines: hardware.Hardware,
    plugin_directory: pathlib.Path | None = None,
    served: Served | None = None,
    *,
    pretends_nodes: bool = False,
    scaling: Scaling | None = None,
) -> Run:
    """The agents of simulated machines, with the recorders of their events.

    Where it ``pretends_nodes``, also of all nodes that others create. With ``scaling`` there are more and fewer of them
    as pods need.

    Their drivers are simulated too, unless there is a directory: each node has one of its own there, by its name, where
    drivers register. Where it is not said how they are served, nobody can ask them anything.
    """

    places = None if served is None else addresses.of_simulated([each.name for each in machines.machines])
    built = agent.Agents(
        surroundings,
        machines,
        _runtime(surroundings, (*machines.all_slices, *(() if scaling is None else scaling.slices)), served),
        directories=None if plugin_directory is None else lambda name: Directories.below(plugin_directory / name),
        addresses=places,
        files=None if served is None else served.files,
        pretends_nodes=pretends_nodes,
    )
    parts: list[controller.Controller] = [built]
    if served is not None and places is not None:
        storage = localprovisioner.LocalProvisioner(surroundings, served.root / "volumes")
        parts = [_endpoint(surroundings, built, places, served), storage, built]
    if scaling is None:
        return lambda: controller.run_all(surroundings, parts)
    admin = surroundings.acting_as(_ADMIN)
    scaled = _Scaled(admin, built, scaling)
    return lambda: controller.together(controller.run_all(surroundings, parts), controller.run_all(admin, [scaled]))


class _Scaled:
    """An autoscaler of simulated machines, which begins with those that are there from before."""

    name: Final = "autoscaler"

    def __init__(self, surroundings: Surroundings, agents: agent.Agents, scaling: Scaling) -> None:
        self._groups: Final = scaling.groups
        self._provider: Final = MachineProvider(agents, surroundings.client)
        self._autoscaler: Final = Autoscaler(surroundings, scaling.groups, self._provider, chosen=scaling.settings)

    async def run(self) -> None:
        await self._provider.resume(self._groups)
        await self._autoscaler.run()


def machine(
    surroundings: Surroundings,
    described: hardware.Machine,
    directories: Directories,
    places: addresses.Addresses,
    served: Served,
) -> Run:
    """The agent of one machine, which sees no pods but its own."""
    machines = hardware.Hardware((described,), ())
    built = agent.Agents(
        surroundings,
        machines,
        _runtime(surroundings, machines.all_slices, served),
        only=described.name,
        directories=lambda _: directories,
        addresses=places,
        files=served.files,
    )
    return lambda: controller.run_all(surroundings, [_endpoint(surroundings, built, places, served), built])


def _runtime(
    surroundings: Surroundings, slices: Iterable[Mapping[str, Any]], served: Served | None
) -> protocol.Runtime:
    """What runs containers; where they really run, they see the devices of these slices."""
    if served is None or served.runtime is RuntimeName.SIMULATED:
        return simulated.SimulatedRuntime(surroundings.clock)
    folder = served.root / "cdi"
    simulatedcdi.write(slices, folder)
    kind = process.ProcessRuntime if served.runtime is RuntimeName.PROCESS else podman.PodmanRuntime
    return kind(served.root, time=surroundings.clock, cdi=(*registry.DIRECTORIES, *served.cdi, folder))


def _environment(url: str) -> dict[str, str]:
    """How clients in pods find the API server."""
    parsed = urllib.parse.urlsplit(url)
    return {"KUBERNETES_SERVICE_HOST": parsed.hostname or "", "KUBERNETES_SERVICE_PORT": str(parsed.port or 443)}


def _endpoint(
    surroundings: Surroundings, agents: agent.Agents, places: addresses.Addresses, served: Served
) -> server.Endpoint:
    if served.serving_files is not None:
        serving = certificate.load(*served.serving_files, client_authority=served.client_authority)
    else:
        serving = certificate.make(
            "nodes", address="127.0.0.1", client_authority=served.client_authority, now=surroundings.clock.utc()
        )
    if served.local_endpoints is not None:
        served.local_endpoints.add(places, certificate=serving.certificate)
    return server.Endpoint(places, agents, context=serving.context, time=surroundings.clock)
