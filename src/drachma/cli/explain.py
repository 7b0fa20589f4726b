"""``drachma explain``: why pods, claims and workloads are pending, in a live cluster or in files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.api import meta
    from drachma.offline.clusterfiles import ClusterFiles
    from drachma.simulate import Simulation

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)

Namespace: TypeAlias = Annotated[str, typer.Option("-n", "--namespace", help="Namespace of the object.")]
NodeGroups: TypeAlias = Annotated[list[str] | None, typer.Option(help="Files with node groups that might help.")]


@app.callback()
def _group() -> None:
    """Explain why pods, claims and workloads are pending, and what would help."""


@app.command()
def pod(
    name: str,
    namespace: Namespace = "default",
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    node_groups: NodeGroups = None,
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every node, every device and all changes that would help.")
    ] = False,
) -> None:
    """Show the node that a pod would get, or why it fits on none, and what would help.

    The summary has at most ten lines; --verbose shows the reason against each node and device. docs/explain.md
    describes the fields of -o json.

    Exit code 1: the pod fits on no node.
    """
    from drachma.api import pod as api_pod
    from drachma.cli import clusters, terminal
    from drachma.simulate import explanationlines, explanationsummary, podexplanation

    cluster, source = _simulate(file, kubeconfig, context, node_groups, feature_gates)
    pending = cluster.find(namespace, name)
    if pending is None:
        raise errors.DecodeError(_absence("pod", namespace, name, source.state.all(api_pod.Pod)))
    explained = podexplanation.explain(cluster, pending, groups=source.groups, quotas=source.quotas)
    is_short = not verbose and not explained.node
    lines = explanationsummary.lines(explained) if is_short else explanationlines.pod_lines(explained)
    texts = terminal.colour_explanation(lines) if terminal.has_colour() else lines
    clusters.write(podexplanation.to_document(explained), texts, output)
    if not explained.node:
        raise typer.Exit(1)


@app.command()
def claim(
    name: str,
    namespace: Namespace = "default",
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Show the devices of a claim, the nodes on which it could be allocated, or the reasons why it cannot be.

    Exit code 1: the claim is not allocated, and fits on no node.
    """
    from drachma.allocator import explanation
    from drachma.allocator.explanation import survey
    from drachma.cli import clusters
    from drachma.simulate import explanationlines

    cluster, _ = _simulate(file, kubeconfig, context, None, feature_gates)
    stored_claim = cluster.snapshot.claims.get(namespace, name)
    if stored_claim is None:
        raise errors.DecodeError(_absence("claim", namespace, name, cluster.snapshot.claims))
    allocation = stored_claim.status.allocation
    if allocation is not None:
        devices = [f"{each.driver}/{each.pool}/{each.device}" for each in allocation.devices.results]
        document: dict[str, Any] = {"claim": f"{namespace}/{name}", "devices": devices}
        clusters.write(document, [f"claim {namespace}/{name}: has {', '.join(devices) or 'no devices'}"], output)
        return
    nodes = sorted((info.place for info in cluster.snapshot.nodes), key=lambda place: place.name)
    explainer = explanation.Explainer(cluster.snapshot.devices.allocator)
    surveyed = survey.survey(explainer, nodes, claims=[stored_claim], most=5)
    fits = any(each.explanation.outcome == "Fits" for each in surveyed.groups)
    reports = [{**explanation.to_document(each.explanation), "alsoOn": list(each.others)} for each in surveyed.groups]
    document = {"claim": f"{namespace}/{name}", "nodes": reports}
    clusters.write(document, explanationlines.survey_lines(surveyed), output)
    if not fits:
        raise typer.Exit(1)


@app.command()
def workload(
    name: str,
    namespace: Namespace = "default",
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    queueing_config: options.QueueingConfig = None,
    output: options.Output = None,
) -> None:
    """Show why a workload is pending: missing quota and its users, workloads to preempt, and changes that would help.

    NAME is the name of the workload, or of the Job, JobSet or pod that owns it. The configuration is that of
    --queueing-config, or of the ConfigMap kueue-manager-config in kueue-system.

    Exit code 1: the workload is not admitted, and would not be if it were first in its queue.
    """
    from drachma.cli import clusters
    from drachma.queueing import explanation
    from drachma.queueing.component import ActiveConfiguration
    from drachma.simulate.queueingstate import QueueingState

    configuration = None
    if queueing_config is not None:
        from drachma.process import configurationfile

        configuration = ActiveConfiguration()
        configurationfile.load(queueing_config, configuration)
    objects = clusters.read_queueing(file, kubeconfig, context=context)
    explanations = QueueingState(objects, datetime.now(UTC), configured=configuration).explain(namespace, name)
    if len(explanations) != 1:
        names = ", ".join(each.workload for each in explanations)
        problem = f"there is no workload {namespace}/{name}"
        raise errors.DecodeError(f"{name} has several workloads: {names}" if explanations else problem)
    (explained,) = explanations
    clusters.write(explanation.to_document(explained), explanation.render(explained).splitlines(), output)
    if explained.outcome in (explanation.Outcome.DOES_NOT_FIT, explanation.Outcome.NOT_QUEUED):
        raise typer.Exit(1)


def _simulate(
    file: list[str] | None,
    kubeconfig: Any,
    context: str,
    node_groups: list[str] | None,
    feature_gates: str,
) -> tuple[Simulation, ClusterFiles]:
    from drachma.cli import clusters
    from drachma.scheduler import Settings
    from drachma.simulate import Simulation

    enabled = gates.Gates.parse(feature_gates)
    cluster = clusters.read(file, kubeconfig, context=context, more=node_groups, enabled=enabled)
    return Simulation(cluster.state, settings=Settings(gates=enabled)), cluster


def _absence(kind: str, namespace: str, name: str, existing_objects: Iterable[meta.Object]) -> str:
    """Return the message for an object that is not there, with the object that may be meant."""
    from drachma.cli import nearest

    places: dict[str, list[str]] = {}
    for each in existing_objects:
        places.setdefault(each.metadata.name, []).append(each.metadata.namespace)
    if namespace in places.get(name, ()):
        return f"{kind} {namespace}/{name}: another scheduler looks after it"
    problem = f"there is no {kind} {namespace}/{name}"
    if name in places:
        return f"{problem}; namespace {places[name][0]} has one (-n {places[name][0]})"
    siblings = [each for each, namespaces in places.items() if namespace in namespaces]
    return f"{problem}{nearest.suggest(name, siblings)}" if nearest.is_near(name, siblings) else problem
