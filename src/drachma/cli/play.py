"""``drachma play``: manifests on a control plane of their own, and the nodes and devices that pods get."""

from __future__ import annotations

import functools
import logging
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.cli import nodeoptions, options

_INTERRUPTED: Final = 130
"""Exit code after SIGINT or SIGTERM."""


def play(
    file: options.Filename,
    wait: Annotated[
        options.PlayGoal | None,
        typer.Option(help="Wait until all pods are scheduled, running or complete, and fail if they are not in time."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", "--seconds", min=0, help="Seconds to wait for the control plane to settle.")
    ] = 30.0,
    nodes: nodeoptions.Nodes = 0,
    profile: nodeoptions.Profile = None,
    run_for: nodeoptions.RunFor = None,
    exit_code: nodeoptions.ExitCode = None,
    pretend_nodes: nodeoptions.PretendNodes = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Show the logs of pods; needs --nodes or --pretend-nodes.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain why the claims of pending pods fit nowhere.")
    ] = False,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
    feature_gates: options.FeatureGates = "",
    enable_first_alpha: options.EnableFirstAlpha = False,
    gangs: options.Gangs = False,
) -> None:
    """Start a control plane, apply manifests to it, and show the node and devices that each pod gets.

    The control plane is in memory, on a free port of this machine, and ends with the command. Jobs, Deployments and
    other workloads are shown by their pods. Nodes in the manifests are objects only, unless there is --pretend-nodes;
    those without declaredFeatures get the features of a simulated machine. With --nodes there are simulated machines,
    on which pods run. With --queueing, jobs wait for quota, and the
    admitted workloads are shown.

    Exit code 0: all pods have a node, or are in the state that --wait names. 1: some are not. 2: the manifests are
    invalid. 130: the command was interrupted.
    """
    from drachma.api import gates
    from drachma.cli import playground
    from drachma.listening import addresses
    from drachma.node.pods import noderesources
    from drachma.offline import manifestfiles
    from drachma.process import embedded, hosting, queueingchoice

    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    if profile is not None and not nodes:
        raise errors.InvalidValueError(f"--profile {profile}: goes with --nodes only")
    if wait in (options.PlayGoal.RUNNING, options.PlayGoal.COMPLETE) and not nodes and not pretend_nodes:
        raise errors.InvalidValueError(f"--wait {wait}: pods run only with --nodes or --pretend-nodes")
    sources = manifestfiles.read_all(file)
    queues = queueingchoice.choose(queueing_config, is_on=with_queueing)
    enabled = gates.Gates.parse(options.with_gangs(options.with_first_alpha(feature_gates, enable_first_alpha), gangs))
    server_options = hosting.Options(
        address=addresses.Address("127.0.0.1", 0), additions=queues.additions, gates=enabled
    )
    components = functools.partial(
        embedded.beside,
        plane=embedded.ControlPlane(
            gates=enabled,
            simulated=nodeoptions.machines(profile or nodeoptions.DEFAULT_PROFILE, nodes),
            pretends_nodes=pretend_nodes,
            defaults=nodeoptions.run_defaults(run_for, exit_code),
        ),
        more=queues.components,
    )
    settings = playground.Settings(
        timeout,
        goal=wait,
        explains=explain,
        shows_logs=logs,
        runs_pods=bool(nodes) or pretend_nodes,
        has_queues=queues.is_on,
        declared_features=noderesources.declared_features(enabled),
    )
    result = playground.Result()
    try:
        hosting.run(server_options, components, functools.partial(playground.run, sources, result, settings=settings))
    finally:
        # Print after the control plane has ended, because a closed pipe must not interrupt it.
        for line in result.lines:
            typer.echo(line)
    if not result.is_complete:
        typer.echo("drachma: interrupted", err=True)
        raise typer.Exit(_INTERRUPTED)
    if result.unfinished:
        raise typer.Exit(1)
