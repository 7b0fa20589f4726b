"""``drachma explain``: why pods, claims and workloads get nothing, on a live cluster or on what files say of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias

import typer

from drachma import errors
from drachma.allocator import explanation
from drachma.allocator.explanation import survey
from drachma.api import gates
from drachma.cli import clusters, options, queueingclusters
from drachma.process import configurationfile
from drachma.queueing import explanation as workloads
from drachma.queueing.component import ActiveConfiguration
from drachma.scheduler import Settings
from drachma.simulate import NodeGroup, Simulation, podexplanation
from drachma.simulate.podexplanation import PodExplanation
from drachma.simulate.queueingstate import QueueingState

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)

_MOST_NAMES: Final = 8

Files: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", help="A file, a folder, or - for standard input, in place of a server."),
]
Namespace: TypeAlias = Annotated[str, typer.Option("-n", "--namespace", help="Where it is.")]
NodeGroups: TypeAlias = Annotated[list[str] | None, typer.Option(help="Files with node groups that might help.")]
Output: TypeAlias = Annotated[options.Format | None, typer.Option("-o", "--output", help="As a document.")]


@app.callback()
def _group() -> None:
    """Say why pods, claims and workloads get nothing, and what would help."""


@app.command()
def pod(
    name: str,
    namespace: Namespace = "default",
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    node_groups: NodeGroups = None,
    output: Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Say where a pod would go, or what rules out every node, device by device, and what would help.

    Exit code 1: it would go nowhere.
    """
    cluster, groups = _cluster(file, kubeconfig, context, node_groups, feature_gates)
    asked = cluster.find(namespace, name)
    if asked is None:
        raise errors.DecodeError(f"there is no pod {namespace}/{name} for this scheduler to look after")
    explained = podexplanation.explain(cluster, asked, groups=groups)
    clusters.write(podexplanation.to_document(explained), pod_lines(explained), output)
    if not explained.node:
        raise typer.Exit(1)


@app.command()
def claim(
    name: str,
    namespace: Namespace = "default",
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Say which devices a claim has, on which nodes it could be allocated, or why on none.

    Exit code 1: it is not allocated, and could be nowhere.
    """
    cluster, _ = _cluster(file, kubeconfig, context, None, feature_gates)
    asked = cluster.snapshot.claims.get(namespace, name)
    if asked is None:
        raise errors.DecodeError(f"there is no claim {namespace}/{name}")
    if asked.status.allocation is not None:
        devices = [f"{each.driver}/{each.pool}/{each.device}" for each in asked.status.allocation.devices.results]
        document: dict[str, Any] = {"claim": f"{namespace}/{name}", "devices": devices}
        clusters.write(document, [f"claim {namespace}/{name}: has {', '.join(devices) or 'no devices'}"], output)
        return
    nodes = sorted((info.place for info in cluster.snapshot.nodes), key=lambda place: place.name)
    explainer = explanation.Explainer(cluster.snapshot.devices.allocator)
    surveyed = survey.survey(explainer, nodes, wanted=[asked], most=5)
    fits = any(each.explanation.outcome == "Fits" for each in surveyed.groups)
    reports = [{**explanation.to_document(each.explanation), "alsoOn": list(each.others)} for each in surveyed.groups]
    clusters.write({"claim": f"{namespace}/{name}", "nodes": reports}, _survey_lines(surveyed), output)
    if not fits:
        raise typer.Exit(1)


@app.command()
def workload(
    name: str,
    namespace: Namespace = "default",
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    queueing_config: options.QueueingConfig = None,
    output: Output = None,
) -> None:
    """Say why a workload waits: what is short by how much, who has it, whom it may preempt, what would make it fit.

    NAME is that of the workload, or of the Job, JobSet or pod that it belongs to.
    The configuration is that of --queueing-config, or of the ConfigMap kueue-controller-manager-config in kueue-system.
    Exit code 1: it is not admitted, and would not be if it were its turn.
    """
    configured = None
    if queueing_config is not None:
        configured = ActiveConfiguration()
        configurationfile.load(queueing_config, configured)
    objects = queueingclusters.read(file, kubeconfig, context=context)
    found = QueueingState(objects, datetime.now(UTC), configured=configured).explain(namespace, name)
    if len(found) != 1:
        names = ", ".join(each.workload for each in found)
        problem = f"{name} has several workloads: {names}" if found else f"there is no workload {namespace}/{name}"
        raise errors.DecodeError(problem)
    (explained,) = found
    lines = workloads.render(explained).splitlines()
    clusters.write(workloads.to_document(explained), lines, output)
    if explained.outcome in (workloads.Outcome.DOES_NOT_FIT, workloads.Outcome.NOT_QUEUED):
        raise typer.Exit(1)


def _cluster(
    file: list[str] | None,
    kubeconfig: Any,
    context: str,
    node_groups: list[str] | None,
    feature_gates: str,
) -> tuple[Simulation, tuple[NodeGroup, ...]]:
    enabled = gates.Gates.parse(feature_gates)
    read = clusters.read(file, kubeconfig, context=context, more=node_groups, enabled=enabled)
    return Simulation(read.state, chosen=Settings(gates=enabled)), read.groups


# As text


def pod_lines(explained: PodExplanation) -> Iterator[str]:
    """An explanation for people."""
    if explained.node:
        yield f"pod {explained.pod}: {'would go to' if explained.feasible else 'is on'} node {explained.node}"
        if explained.feasible > 1:
            yield f"  {explained.feasible} nodes would do"
        for device in explained.devices:
            yield f"  {device.claim}, {device.request}: {device.device}"
        return
    yield f"pod {explained.pod}: fits nowhere: {explained.message}"
    for entry in explained.ruled_out:
        yield f"  {_counted(len(entry.nodes))}: {', '.join(entry.reasons)} ({entry.plugin}): {_listed(entry.nodes)}"
    for report in explained.reports:
        yield from (f"  {line}" for line in explanation.render(report.explanation).splitlines())
        if report.also_on:
            yield f"    the same on {_counted(len(report.also_on))} more: {_listed(report.also_on)}"
    if explained.victims:
        yield f"  preemption {explained.preemption}, and evict {_listed(explained.victims)}"
    elif explained.preemption:
        yield f"  {explained.preemption}"
    if explained.holders:
        yield f"  less important pods hold devices there: {_listed(explained.holders)}"
        yield "    preemption does not take them: a device is free when its claim is gone, not when a pod is"
    for group in explained.helpful_groups:
        yield f"  a node more of group {group} would do"
    for group, reason in explained.useless_groups.items():
        yield f"  a node more of group {group} would not help: {reason}"


def _survey_lines(surveyed: survey.Survey) -> Iterator[str]:
    for each in surveyed.groups:
        yield from explanation.render(each.explanation).splitlines()
        if each.others:
            yield f"  the same on {_counted(len(each.others))} more: {_listed(each.others)}"
    if surveyed.unexplained:
        yield f"{_counted(len(surveyed.unexplained))} more, for other reasons: {_listed(surveyed.unexplained)}"


def _counted(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
