"""Node agents as components: simulated machines next to a control plane, or the machine of this process.

This module chooses their container runtimes and their addresses.
"""

from __future__ import annotations

import pathlib
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from drachma.api import codec
from drachma.node import agent
from drachma.node.agents import Agents
from drachma.node.directories import Directories
from drachma.node.endpoint import certificate, server
from drachma.node.registration import addresses
from drachma.node.registration.machine import Machine
from drachma.node.runtimes import mixed, podman, process, protocol
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.node.setup.volumes import localprovisioner
from drachma.node.simulation import drivers, hardware
from drachma.node.simulation.runtime import Defaults, SimulatedRuntime
from drachma.nodewire.cdi import registry
from drachma.process.components import Run
from drachma.runtime import Surroundings, controller
from drachma.simulate import NodeGroup
from drachma.simulate.autoscaler import Autoscaler, Settings
from drachma.simulate.autoscaler.machineprovider import MachineProvider

_ADMIN: Final = "kubernetes-admin"
"""User that creates and deletes nodes, which neither controllers nor nodes may do."""


class EndpointRegistry(Protocol):
    """Endpoints that the API server of this program may dial although they are at loopback addresses."""

    def add(self, endpoint: addresses.Addresses, *, certificate: bytes) -> None:
        """Register the addresses of an endpoint that serves with this certificate (PEM)."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of node endpoints: authority of client certificates, container runtime, and folder of files."""

    client_authority: bytes
    apiserver: str
    """URL at which pods reach the API server."""
    root: pathlib.Path
    runtime: RuntimeName = RuntimeName.SIMULATED
    simulated: tuple[mixed.Rule, ...] = ()
    """Containers that are simulated although the runtime is another one."""
    serving_files: tuple[pathlib.Path, pathlib.Path] | None = None
    """Serving certificate and its key; without them a self-signed one is created."""
    local_endpoints: EndpointRegistry | None = None
    """Registry for endpoints at loopback addresses; without one, the API server dials only other addresses."""
    cdi: tuple[pathlib.Path, ...] = ()
    """Folders of CDI files in addition to the usual ones."""
    defaults: Defaults = Defaults()
    """Runs of simulated containers that end by themselves."""
    allows_unenforced_security: bool = False
    """True to run containers whose security context the runtime cannot enforce completely."""
    families: tuple[str, ...] = ("IPv4",)
    """IP families of simulated pods, the primary one first."""

    @property
    def files(self) -> agent.PodFiles:
        """Settings of the volumes of pods."""
        return agent.PodFiles(
            self.root / "pods", _environment(self.apiserver), allows_unenforced=self.allows_unenforced_security
        )


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """Autoscaling of simulated machines: node groups and settings."""

    groups: tuple[NodeGroup, ...]
    settings: Settings

    @property
    def slices(self) -> list[dict[str, Any]]:
        """Slices that one machine of each group publishes."""
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
    """Return the function that runs the agents of simulated machines, with their event recorders.

    With ``pretends_nodes``, there are also agents for all nodes that other clients create. With ``scaling``, an
    autoscaler adds and removes machines as pods need.

    Drivers are simulated as well, unless there is a plugin directory; then the drivers of a node register in its folder
    of the node's name. Without ``served``, the nodes have no endpoints.
    """

    endpoints = None
    if served is not None:
        names = [each.name for each in machines.machines]
        endpoints = addresses.simulated_addresses(names, families=served.families)
    agents = Agents(
        surroundings,
        machines,
        _runtime(surroundings, (*machines.all_slices, *(() if scaling is None else scaling.slices)), served),
        directories=None if plugin_directory is None else lambda name: Directories.below(plugin_directory / name),
        addresses=endpoints,
        files=None if served is None else served.files,
        pretends_nodes=pretends_nodes,
    )
    parts: list[controller.Controller] = [agents]
    if served is not None and endpoints is not None:
        storage = localprovisioner.LocalProvisioner(surroundings, served.root / "volumes")
        parts = [_endpoint(surroundings, agents, endpoints, served), storage, agents]
    if scaling is None:
        return lambda: controller.run_all(surroundings, parts)
    admin = surroundings.acting_as(_ADMIN)
    scaled = _ScaledMachines(admin, agents, scaling)
    return lambda: controller.together(controller.run_all(surroundings, parts), controller.run_all(admin, [scaled]))


class _ScaledMachines:
    """An autoscaler of simulated machines, which first restores the machines of an earlier start."""

    name: Final = "autoscaler"

    def __init__(self, surroundings: Surroundings, agents: Agents, scaling: Scaling) -> None:
        self._groups: Final = scaling.groups
        self._provider: Final = MachineProvider(agents, surroundings.client)
        self._autoscaler: Final = Autoscaler(surroundings, scaling.groups, self._provider, settings=scaling.settings)

    async def run(self) -> None:
        await self._provider.resume(self._groups)
        await self._autoscaler.run()


def machine(
    surroundings: Surroundings,
    described: Machine,
    directories: Directories,
    places: addresses.Addresses,
    served: Served,
) -> Run:
    """Return the function that runs the agent of one machine, which sees its own pods only."""
    machines = hardware.Hardware((described,), ())
    agents = Agents(
        surroundings,
        machines,
        _runtime(surroundings, machines.all_slices, served),
        only=described.name,
        directories=lambda _: directories,
        addresses=places,
        files=served.files,
    )
    return lambda: controller.run_all(surroundings, [_endpoint(surroundings, agents, places, served), agents])


def _runtime(
    surroundings: Surroundings, slices: Iterable[Mapping[str, Any]], served: Served | None
) -> protocol.Runtime:
    """Return the container runtime. Real containers see the devices of these slices."""
    simulated = SimulatedRuntime(surroundings.clock, served.defaults if served is not None else None)
    if served is None or served.runtime is RuntimeName.SIMULATED:
        return simulated
    folder = served.root / "cdi"
    drivers.write_cdi_files(slices, folder)
    kind = process.ProcessRuntime if served.runtime is RuntimeName.PROCESS else podman.PodmanRuntime
    real = kind(served.root, clock=surroundings.clock, cdi=(*registry.DIRECTORIES, *served.cdi, folder))
    return mixed.MixedRuntime(real, simulated, served.simulated) if served.simulated else real


def _environment(url: str) -> dict[str, str]:
    """Return the environment variables by which clients in pods find the API server."""
    parsed = urllib.parse.urlsplit(url)
    return {"KUBERNETES_SERVICE_HOST": parsed.hostname or "", "KUBERNETES_SERVICE_PORT": str(parsed.port or 443)}


def _endpoint(
    surroundings: Surroundings, agents: Agents, places: addresses.Addresses, served: Served
) -> server.Endpoint:
    if served.serving_files is not None:
        serving = certificate.load(*served.serving_files, client_authority=served.client_authority)
    else:
        serving = certificate.make(
            "nodes", address="127.0.0.1", client_authority=served.client_authority, now=surroundings.clock.utc()
        )
    if served.local_endpoints is not None:
        served.local_endpoints.add(places, certificate=serving.certificate)
    return server.Endpoint(places, agents, context=serving.context, clock=surroundings.clock)
