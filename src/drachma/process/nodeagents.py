"""The agents of nodes as components: simulated machines beside a control plane, or the machine of this process.

Here is chosen what runs their containers, and where API servers find them.
"""

from __future__ import annotations

import pathlib
import urllib.parse

import msgspec

from drachma.client import Selection
from drachma.node import agent, hardware, simulatedcdi
from drachma.node.directories import Directories
from drachma.node.endpoint import addresses, certificate, server
from drachma.node.runtimes import podman, process, protocol, simulated
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.nodewire.cdi import registry
from drachma.process.components import Run
from drachma.runtime import Surroundings, controller


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are served: whose certificates clients may show, what runs containers, and where it keeps files."""

    client_authority: bytes
    apiserver: str
    """The URL at which pods reach the API server."""
    root: pathlib.Path
    runtime: RuntimeName = RuntimeName.SIMULATED


def simulated_machines(
    surroundings: Surroundings,
    machines: hardware.Hardware,
    plugin_directory: pathlib.Path | None = None,
    served: Served | None = None,
    *,
    pretends_nodes: bool = False,
) -> Run:
    """The agents of simulated machines, with the recorders of their events.

    Where it ``pretends_nodes``, also of all nodes that others create.

    Their drivers are simulated too, unless there is a directory: each node has one of its own there, by its name, where
    drivers register. Where it is not said how they are served, nobody can ask them anything.
    """

    places = None if served is None else addresses.of_simulated([each.name for each in machines.machines])
    built = agent.Agents(
        surroundings,
        machines,
        _runtime(surroundings, machines, served),
        directories=None if plugin_directory is None else lambda name: Directories.below(plugin_directory / name),
        addresses=places,
        files=None if served is None else agent.PodFiles(served.root / "pods", _environment(served.apiserver)),
        pretends_nodes=pretends_nodes,
    )
    if served is None or places is None:
        return lambda: controller.run_all(surroundings, [built])
    return lambda: controller.run_all(surroundings, [_endpoint(surroundings, built, places, served), built])


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
        _runtime(surroundings, machines, served),
        selection=Selection(fields=f"spec.nodeName={described.name}"),
        directories=lambda _: directories,
        addresses=places,
        files=agent.PodFiles(served.root / "pods", _environment(served.apiserver)),
    )
    return lambda: controller.run_all(surroundings, [_endpoint(surroundings, built, places, served), built])


def _runtime(surroundings: Surroundings, machines: hardware.Hardware, served: Served | None) -> protocol.Runtime:
    if served is None or served.runtime is RuntimeName.SIMULATED:
        return simulated.SimulatedRuntime(surroundings.clock)
    folder = served.root / "cdi"
    simulatedcdi.write(machines.all_slices, folder)
    kind = process.ProcessRuntime if served.runtime is RuntimeName.PROCESS else podman.PodmanRuntime
    return kind(served.root, time=surroundings.clock, cdi=(*registry.DIRECTORIES, folder))


def _environment(url: str) -> dict[str, str]:
    """How clients in pods find the API server."""
    parsed = urllib.parse.urlsplit(url)
    return {"KUBERNETES_SERVICE_HOST": parsed.hostname or "", "KUBERNETES_SERVICE_PORT": str(parsed.port or 443)}


def _endpoint(
    surroundings: Surroundings, agents: agent.Agents, places: addresses.Addresses, served: Served
) -> server.Endpoint:
    context = certificate.context(
        "nodes", address="127.0.0.1", client_authority=served.client_authority, now=surroundings.clock.utc()
    )
    return server.Endpoint(places.socket, agents, context=context, time=surroundings.clock)
