"""``drachma up``: a whole cluster in one process: API server, controllers, scheduler and simulated nodes."""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from drachma import errors
from drachma.cli import nodeoptions, options, serveroptions
from drachma.node.runtimes.runtimename import RuntimeName

if TYPE_CHECKING:
    from drachma.node.registration.machine import Machine
    from drachma.node.simulation.hardware import Hardware
    from drachma.process.nodeagents import Scaling
    from drachma.simulate import NodeGroup

_INTERVAL_SECONDS: Final = 2.0
"""Time between two checks of the autoscaler; simulated machines start at once."""

DEFAULT_DASHBOARD: Final = "127.0.0.1:0"


@serveroptions.expand
def up(
    *,
    name: options.ClusterName = "drachma",
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10_000,
            help="Number of simulated nodes: 3 by default, or 0 if nodes come from --autoscale, --pretend-nodes or "
            "--bootstrap-kubeconfig-out.",
        ),
    ] = None,
    profile: nodeoptions.Profile = None,
    run_for: nodeoptions.RunFor = None,
    exit_code: nodeoptions.ExitCode = None,
    no_device_classes: Annotated[
        bool,
        typer.Option("--no-device-classes", help="Create no device classes; the chart of a driver brings its own."),
    ] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Keep objects in memory only.")] = False,
    no_kubeconfig: Annotated[
        bool, typer.Option("--no-kubeconfig", help="Write no context into the kubeconfig that kubectl uses.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; drachma down stops the cluster.")
    ] = False,
    bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
    filter_timeout: options.FilterTimeout = options.DEFAULT_FILTER_TIMEOUT,
    pretend_nodes: nodeoptions.PretendNodes = False,
    plugin_dir: nodeoptions.PluginDirectory = None,
    runtime: nodeoptions.ContainerRuntime = RuntimeName.SIMULATED,
    simulate: nodeoptions.Simulate = None,
    allow_unenforced_security: nodeoptions.AllowUnenforcedSecurity = False,
    autoscale: Annotated[
        bool, typer.Option("--autoscale", help="Add and remove simulated machines as pods need.")
    ] = False,
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with the node groups to scale; by default one group of --profile.")
    ] = None,
    unneeded: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds that a node must be unneeded before it is removed; 600 by default."),
    ] = None,
    cooldown: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after adding nodes in which no node is removed; 600 by default."),
    ] = None,
    record: options.Record = None,
    record_size: Annotated[
        int | None,
        typer.Option(min=1, help="Size in MiB at which the recording is renamed to FILE.1; 64 by default."),
    ] = None,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
    processes: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Number of processes: with 2 the components have one of their own, with 3 the scheduler too, with 4 "
            "the simulated nodes too. auto takes one for each core, at most 4.",
        ),
    ] = "1",
    log_format: options.LogFormat = options.LogLines.TEXT,
    dashboard_listen: Annotated[
        str, typer.Option(help="host:port of the dashboard; port 0 takes any free port, and an empty text serves none.")
    ] = DEFAULT_DASHBOARD,
    verbose: options.Verbose = False,
    server: serveroptions.ServerOptions,
    store: serveroptions.StoreOptions,
    limits: serveroptions.LimitOptions,
) -> None:
    """Run a cluster: API server, controllers, scheduler and simulated nodes with GPUs, until Ctrl-C or SIGTERM.

    Objects are kept in a folder of your state directory, or in --data. The context drachma is written into the
    kubeconfig that kubectl uses, or into the file of --kubeconfig-out. Several clusters run next to each other by
    --name; drachma status lists them, drachma down stops them.

    Pods run on simulated nodes as their commands and annotations say, without processes. With --runtime process,
    containers are processes of this machine, without isolation; with podman they are real ones. With --plugin-dir,
    drivers are real ones, which register in DIR/NODE/plugins_registry. Nodes that other clients create are objects
    only, so nodes copied from another cluster soon become unreachable; --pretend-nodes keeps them ready.

    With --autoscale, machines are added when pods are pending and removed when no pod needs them. With --queueing, jobs
    in queues wait for quota, devices included. The configuration is that of --queueing-config, or of Kueue's ConfigMap
    in kueue-system; changes take effect at once.
    """
    from drachma.cli import clusters, clusterstart
    from drachma.listening import addresses
    from drachma.process import components, embedded, hosting, logs, queueingchoice, supervisor, worker
    from drachma.server.kinds import nodemetrics
    from drachma.web import serving

    has_simulated = runtime is RuntimeName.SIMULATED or bool(simulate)
    _refuse_ignored(
        {
            "--node-groups": (node_groups, "--autoscale", autoscale),
            "--unneeded": (unneeded, "--autoscale", autoscale),
            "--cooldown": (cooldown, "--autoscale", autoscale),
            "--record-size": (record_size, "--record", record is not None),
            "--simulate": (simulate, "--runtime process or podman", runtime is not RuntimeName.SIMULATED),
            "--run-for": (run_for, "--runtime simulated or --simulate", has_simulated),
            "--exit-code": (exit_code, "--runtime simulated or --simulate", has_simulated),
        }
    )
    process_count = supervisor.parse_count(processes)
    logs.to_stderr(verbose=verbose, is_json=log_format.is_json)
    brings_nodes = autoscale or pretend_nodes or bootstrap_kubeconfig_out is not None
    count = nodes if nodes is not None else 0 if brings_nodes else nodeoptions.DEFAULT_UP_NODES
    if profile is not None and not count and not (autoscale and not node_groups):
        raise errors.InvalidValueError(f"--profile {profile}: there are no simulated nodes, because of --nodes 0")
    hardware_profile = profile or nodeoptions.DEFAULT_PROFILE
    simulated = nodeoptions.machines(hardware_profile, count)
    if simulated is not None and no_device_classes:
        simulated = msgspec.structs.replace(simulated, classes=())
    scaling = None
    if autoscale:
        simulated, scaling = _scale(
            simulated,
            clusters.groups(node_groups) if node_groups else None,
            profile=hardware_profile,
            unneeded=options.DEFAULT_UNNEEDED if unneeded is None else unneeded,
            cooldown=options.DEFAULT_COOLDOWN if cooldown is None else cooldown,
        )
    board = serving.Companion(addresses.Address.parse(dashboard_listen)) if dashboard_listen else None
    start = clusterstart.ClusterStart(
        name=name,
        data=server.data,
        is_in_memory=memory,
        kubeconfig_out=server.kubeconfig_out,
        merges_kubeconfig=not no_kubeconfig and server.kubeconfig_out is None,
        hardware=simulated,
        profile=hardware_profile if count else "",
        dashboard_url=(lambda: board.url) if board is not None else lambda: "",
    )
    start.refuse_second()
    if detach:
        start.run_detached()
        return
    queues = queueingchoice.choose(queueing_config, is_on=with_queueing)
    server_options = msgspec.structs.replace(
        server, data=None if memory else start.folder, listen=server.listen or start.free_address()
    ).build(
        store,
        limits,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        has_gangs=gangs,
        additions=queues.additions.with_kinds(*nodemetrics.KINDS),
        announce=start.announce,
    )
    hosting.run(
        server_options,
        *([board.run] if board is not None else []),
        functools.partial(
            supervisor.beside,
            plane=embedded.ControlPlane(
                policy=options.policy(policy),
                filter_seconds=filter_timeout,
                gates=server_options.gates,
                simulated=simulated,
                pretends_nodes=pretend_nodes,
                plugin_directory=plugin_dir,
                runtime=runtime,
                simulated_containers=nodeoptions.simulated_containers(simulate),
                allows_unenforced_security=allow_unenforced_security,
                defaults=nodeoptions.run_defaults(run_for, exit_code),
                scaling=scaling,
                recording_to=components.RecordingTo.of(record, mebibytes=record_size or options.DEFAULT_RECORD_SIZE),
            ),
            more=queues.components,
            processes=process_count,
            limits=server_options.limits.ports,
            logging=worker.Logging(verbose=verbose, is_json=log_format.is_json),
        ),
    )


def _refuse_ignored(needs: dict[str, tuple[Any, str, bool]]) -> None:
    """Raise InvalidValueError for an option without the other option that it needs."""
    for option, (value, needed_option, is_present) in needs.items():
        if value not in (None, []) and not is_present:
            raise errors.InvalidValueError(f"{option}: goes with {needed_option} only")


def _scale(
    simulated: Hardware | None,
    groups: tuple[NodeGroup, ...] | None,
    *,
    profile: str,
    unneeded: float,
    cooldown: float,
) -> tuple[Hardware | None, Scaling]:
    """Return the machines to start with, and the autoscaling of these groups, or of one group of the profile."""
    from drachma.node.simulation import hardware
    from drachma.process import nodeagents
    from drachma.simulate.autoscaler import Settings

    if groups is None:
        template = nodeoptions.machines(profile, 1)
        assert template is not None, "one machine is requested"
        simulated = simulated or hardware.Hardware((), template.classes, template.slices)
        groups = (_group(profile, template.machines[0]),)
    settings = Settings(interval=_INTERVAL_SECONDS, unneeded=unneeded, cooldown=cooldown)
    return simulated, nodeagents.Scaling(groups=groups, settings=settings)


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
