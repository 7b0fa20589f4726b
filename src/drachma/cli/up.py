"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING, Annotated, Final

import typer

from drachma import errors
from drachma.cli import options, serveroptions
from drachma.node.runtimes.runtimename import RuntimeName

if TYPE_CHECKING:
    from drachma.node.registration.machine import Machine
    from drachma.process.nodeagents import Scaling
    from drachma.simulate import NodeGroup

_INTERVAL_SECONDS: Final = 2.0
"""Time between two checks of the autoscaler; simulated machines start at once."""

DEFAULT_DASHBOARD: Final = "127.0.0.1:0"


@serveroptions.expand
def up(
    server: serveroptions.ServerOptions,
    store: serveroptions.StoreOptions,
    limits: serveroptions.LimitOptions,
    bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
    filter_timeout: options.FilterTimeout = options.DEFAULT_FILTER_TIMEOUT,
    nodes: options.Nodes = 0,
    profile: options.Profile = "gpu-server",
    pretend_nodes: options.PretendNodes = False,
    plugin_dir: options.PluginDirectory = None,
    runtime: options.ContainerRuntime = RuntimeName.SIMULATED,
    allow_unenforced_security: options.AllowUnenforcedSecurity = False,
    autoscale: Annotated[
        bool, typer.Option("--autoscale", help="Add and remove simulated machines as pods need.")
    ] = False,
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with the node groups to scale; by default one group of --profile.")
    ] = None,
    unneeded: options.Unneeded = options.DEFAULT_UNNEEDED,
    cooldown: options.Cooldown = options.DEFAULT_COOLDOWN,
    record: options.Record = None,
    record_size: options.RecordSize = options.DEFAULT_RECORD_SIZE,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
    dashboard_listen: Annotated[
        str, typer.Option(help="host:port of the dashboard; port 0 takes any free port, and an empty text serves none.")
    ] = DEFAULT_DASHBOARD,
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    With --nodes there are simulated machines: pods run on them as their annotations say, without processes. With
    --runtime process, containers are processes of this machine, without isolation; with podman they are real ones.
    With --plugin-dir, drivers are real ones, which register in DIR/NODE/plugins_registry. Nodes that other clients
    create are objects only, so nodes copied from another cluster soon become unreachable; --pretend-nodes keeps them
    ready.

    With --autoscale, machines are added when pods are pending and removed when no pod needs them. With --queueing, jobs
    in queues wait for quota, devices included. The configuration is that of --queueing-config, or of the ConfigMap
    kueue-controller-manager-config in kueue-system; changes take effect at once.
    """
    import msgspec

    from drachma.cli import clusters
    from drachma.listening import addresses
    from drachma.node.simulation import hardware
    from drachma.process import components, embedded, hosting, logs, queueingchoice
    from drachma.server.kinds import nodemetrics
    from drachma.web import serving

    logs.to_stderr()
    simulated = options.machines(profile, nodes)
    if node_groups and not autoscale:
        raise errors.InvalidValueError("--node-groups: goes with --autoscale only")
    scaling = None
    if autoscale and node_groups:
        scaling = _scaling(clusters.groups(node_groups), unneeded, cooldown)
    elif autoscale:
        template = options.machines(profile, 1)
        assert template is not None, "one machine is requested"
        simulated = simulated or hardware.Hardware((), template.classes, template.slices)
        scaling = _scaling((_group(profile, template.machines[0]),), unneeded, cooldown)
    queues = queueingchoice.choose(queueing_config, is_on=with_queueing)
    server_options = server.build(
        store,
        limits,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        has_gangs=gangs,
        additions=queues.additions.with_kinds(*nodemetrics.KINDS),
    )
    companions: list[hosting.Companion] = []
    if dashboard_listen:
        board = serving.Companion(addresses.Address.parse(dashboard_listen))
        server_options = msgspec.structs.replace(server_options, announce=board.announcing(server_options.announce))
        companions.append(board.run)
    hosting.run(
        server_options,
        *companions,
        functools.partial(
            embedded.beside,
            policy=options.policy(policy),
            filter_seconds=filter_timeout,
            gates=server_options.gates,
            simulated=simulated,
            pretends_nodes=pretend_nodes,
            plugin_directory=plugin_dir,
            runtime=runtime,
            allows_unenforced_security=allow_unenforced_security,
            scaling=scaling,
            recording_to=components.RecordingTo.of(record, mebibytes=record_size),
            more=queues.components,
        ),
    )


def _scaling(groups: tuple[NodeGroup, ...], unneeded: float, cooldown: float) -> Scaling:
    from drachma.process import nodeagents
    from drachma.simulate.autoscaler import Settings

    settings = Settings(interval=_INTERVAL_SECONDS, unneeded=unneeded, cooldown=cooldown)
    return nodeagents.Scaling(groups=groups, settings=settings)


def _group(profile: str, machine: Machine) -> NodeGroup:
    """Return a node group without limits, of machines of a profile."""
    from drachma.simulate import nodegroup

    return nodegroup.read(
        {
            "apiVersion": nodegroup.API_VERSION,
            "kind": nodegroup.KIND,
            "metadata": {"name": pathlib.Path(profile).stem},
            "spec": {"template": {"objects": [machine.node, *machine.slices]}},
        }
    )
