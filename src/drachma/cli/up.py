"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools
import pathlib
from typing import Annotated

import typer

from drachma import errors
from drachma.cli import clusters, limitoptions, optiongroup, options, serveroptions
from drachma.node import hardware
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import components, embedded, hosting, logs, nodeagents, queueingchoice
from drachma.server.kinds.metrics import nodemetrics
from drachma.simulate import NodeGroup, nodegroup
from drachma.simulate.autoscaler import Settings

_ROUND_SECONDS = 2.0
"""Between two looks at a cluster of simulated machines, which come at once."""


@optiongroup.expand
def up(
    server: serveroptions.ServerOptions,
    store: serveroptions.StoreOptions,
    limits: limitoptions.LimitOptions,
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
        bool, typer.Option("--autoscale", help="Have more and fewer simulated machines as pods need.")
    ] = False,
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with the node groups that grow and shrink; else one of --profile.")
    ] = None,
    unneeded: options.Unneeded = options.DEFAULT_UNNEEDED,
    cooldown: options.Cooldown = options.DEFAULT_COOLDOWN,
    record: options.Record = None,
    record_size: options.RecordSize = options.DEFAULT_RECORD_SIZE,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    With --nodes there are simulated machines too: pods run on them as their annotations say, without any process. With
    --runtime process their containers are processes of this machine, without any isolation, with podman real ones.
    With --plugin-dir their drivers are real ones, which register in DIR/NODE/plugins_registry.
    Nodes that somebody else creates are objects only, and those copied from another cluster soon count as dead; with
    --pretend-nodes they are looked after as simulated machines are.
    With --autoscale machines come when pods wait for want of them, and go when nobody needs them any more.
    With --queueing jobs of queues wait for quota, devices included. The configuration is that of --queueing-config, or
    of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    """
    logs.to_stderr()
    simulated = options.machines(profile, nodes)
    if node_groups and not autoscale:
        raise errors.InvalidValueError("--node-groups: goes with --autoscale only")
    scaling = None
    if autoscale and node_groups:
        scaling = _scaling(clusters.groups(node_groups), unneeded, cooldown)
    elif autoscale:
        one = options.machines(profile, 1)
        assert one is not None, "one is not none"
        simulated = simulated or hardware.Hardware((), one.classes, one.slices)
        scaling = _scaling((_group(profile, one.machines[0]),), unneeded, cooldown)
    queues = queueingchoice.chosen(queueing_config, is_on=with_queueing)
    hosted = server.build(
        store,
        limits,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        has_gangs=gangs,
        additions=queues.additions.with_kinds(*nodemetrics.KINDS),
    )
    hosting.run(
        hosted,
        functools.partial(
            embedded.beside,
            policy=options.policy(policy),
            filter_seconds=filter_timeout,
            gates=hosted.gates,
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


def _scaling(groups: tuple[NodeGroup, ...], unneeded: float, cooldown: float) -> nodeagents.Scaling:
    chosen = Settings(interval=_ROUND_SECONDS, unneeded=unneeded, cooldown=cooldown)
    return nodeagents.Scaling(groups=groups, settings=chosen)


def _group(profile: str, machine: hardware.Machine) -> NodeGroup:
    """The machines of a profile as a group without limits."""
    return nodegroup.read(
        {
            "apiVersion": nodegroup.API_VERSION,
            "kind": nodegroup.KIND,
            "metadata": {"name": pathlib.Path(profile).stem},
            "spec": {"template": {"objects": [machine.node, *machine.slices]}},
        }
    )
