"""``drachma scheduler``: the scheduler as a process of its own, on any Kubernetes API server."""

import functools
import pathlib
import random
from typing import Annotated

import typer

from drachma.api import gates
from drachma.cli import options


def scheduler(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    config: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1: profiles, plugins, timeouts and lease. "
            "It replaces the options about these."
        ),
    ] = None,
    scheduler_name: Annotated[
        str, typer.Option(help="Schedule the pods with this schedulerName.")
    ] = "default-scheduler",
    feature_gates: options.FeatureGates = "",
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
    gang_steps: Annotated[
        int, typer.Option(help="Pod placements to try, at most, when searching nodes for a gang.")
    ] = 1000,
    leader_elect: options.LeaderElect = True,
    lease_name: Annotated[
        str,
        typer.Option(
            "--leader-elect-resource-name",
            help="Lease by which one replica leads: kube-scheduler by default, or the scheduler's own name.",
        ),
    ] = "",
    lease_namespace: options.LeaseNamespace = "kube-system",
    peers: Annotated[
        bool,
        typer.Option(help="Work at the same time as other schedulers, all with this option, without a leader."),
    ] = False,
    neighbours: Annotated[
        bool,
        typer.Option(
            help="Other schedulers, such as kube-scheduler, allocate from the same devices: check every allocation, "
            "and undo the later of two that collide, which deletes its pods."
        ),
    ] = False,
    filter_timeout: options.FilterTimeout = options.DEFAULT_FILTER_TIMEOUT,
    binding_timeout: Annotated[float, typer.Option(help="Seconds that devices may take to become ready.")] = 600.0,
    volume_controllers: Annotated[
        bool, typer.Option(help="A controller binds volumes to claims; without one, no pod waits for volumes.")
    ] = True,
    record: options.Record = None,
    record_size: options.RecordSize = options.DEFAULT_RECORD_SIZE,
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    show_profile: Annotated[
        bool, typer.Option("--show-profile", help="Print the plugins in their order, and exit.")
    ] = False,
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log the decision about every pod.")] = False,
) -> None:
    """Schedule pods: choose nodes, allocate and reserve the devices of their claims, bind."""
    from drachma import allocator
    from drachma.client import http
    from drachma.process import components, logs, schedulerconfiguration, standalone
    from drachma.runtime import clock, lease
    from drachma.scheduler import Settings, profiles

    logs.to_stderr("drachma.scheduler", verbose=verbose, is_json=log_format.is_json)
    settings = Settings(
        name=scheduler_name,
        gates=gates.Gates.parse(options.with_gangs(feature_gates, gangs)),
        filter_seconds=filter_timeout,
        binding_seconds=binding_timeout,
        policy=options.policy(policy),
        gang_steps=gang_steps,
        has_volume_controllers=volume_controllers,
        has_peers=peers,
        has_neighbours=neighbours,
    )
    timing: lease.Timing | None = None
    # Pods of another schedulerName are not kube-scheduler's, so its lease does not matter.
    lease_name = lease_name or ("kube-scheduler" if scheduler_name == "default-scheduler" else scheduler_name)
    leads_by = lease.LeaseName(lease_namespace, lease_name) if leader_elect else None
    if config is not None:
        configuration = schedulerconfiguration.read(config, settings)
        settings, leads_by, timing = configuration.settings, configuration.lease_name, configuration.timing
        kubeconfig = kubeconfig or configuration.kubeconfig
    if show_profile:
        typer.echo(str(profiles.default(settings, clock=clock.SystemClock(), rng=random.Random())))
        if settings.policy is not allocator.Policy.FIRST_FIT:
            typer.echo(f"Devices by policy {policy}")
        return
    recording_to = components.RecordingTo.of(record, mebibytes=record_size)
    standalone.run(
        functools.partial(
            components.scheduler,
            settings=settings,
            recording_to=recording_to,
        ),
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager=settings.name,
            gates=settings.gates,
            lease_name=None if peers else leads_by,
            timing=timing or lease.Timing(),
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
        ),
    )
