"""``drachma scheduler``: the scheduler as a process of its own, on any Kubernetes API server."""

import functools
import random
from typing import Annotated

import typer

from drachma.api import gates
from drachma.cli import options


def scheduler(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log the decision about every pod.")] = False,
) -> None:
    """Schedule pods: choose nodes, allocate and reserve the devices of their claims, bind."""
    from drachma import allocator
    from drachma.client import http
    from drachma.process import components, logs, standalone
    from drachma.runtime import clock, lease
    from drachma.scheduler import Settings, profiles

    logs.to_stderr("drachma.scheduler", verbose=verbose)
    settings = Settings(
        name=scheduler_name,
        gates=gates.Gates.parse(options.with_gangs(feature_gates, gangs)),
        filter_seconds=filter_timeout,
        binding_seconds=binding_timeout,
        policy=options.policy(policy),
        gang_steps=gang_steps,
        has_volume_controllers=volume_controllers,
        has_peers=peers,
    )
    if show_profile:
        typer.echo(str(profiles.default(settings, clock=clock.SystemClock(), rng=random.Random())))
        if settings.policy is not allocator.Policy.FIRST_FIT:
            typer.echo(f"Devices by policy {policy}")
        return
    # Pods of another schedulerName are not kube-scheduler's, so its lease does not matter.
    lease_name = lease_name or ("kube-scheduler" if scheduler_name == "default-scheduler" else scheduler_name)
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
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect and not peers else None,
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
        ),
    )
