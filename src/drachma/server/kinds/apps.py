"""Kinds of ``apps``: deployments, replica sets, daemon sets, stateful sets, and the revisions that they keep."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma.server import documents, objectmeta
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.kinds.core import volumes
from drachma.server.kinds.document import Document, DocumentStrategy, restore_fields
from drachma.server.kinds.templated import WorkloadStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import apps as rules


def _revision_cells(revision: Document, now: datetime) -> layout.Cells:
    owners = cells.part(revision, "metadata").get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    group = owner["apiVersion"].rpartition("/")[0] if owner else ""
    kind = owner["kind"].lower() if owner else ""
    controller = f"{kind}{'.' + group if group else ''}/{owner['name']}" if owner else "<none>"
    return [cells.name(revision), controller, revision.get("revision", 0), cells.since_creation(revision, now)]


CONTROLLER_REVISION: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="controllerrevisions",
    kind="ControllerRevision",
    namespaced=True,
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Controller", "The workload of the revision."),
            layout.integer("Revision", "The number of the state."),
            layout.AGE,
        ),
        _revision_cells,
    ),
    rules=rules.KINDS["ControllerRevision"],
    strategy=DocumentStrategy,
)


class ReplicaSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        spec.setdefault("replicas", 1)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0}


def _replica_set_cells(replica_set: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(replica_set, "spec"), cells.part(replica_set, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    since = cells.since_creation(replica_set, now)
    return [cells.name(replica_set), *counts, since, *cells.template(replica_set, absent="<none>")]


REPLICA_SET: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="replicasets",
    kind="ReplicaSet",
    namespaced=True,
    short_names=("rs",),
    categories=("all",),
    subresources=(scaleform.SUBRESOURCE, resources.status()),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Desired", "The desired number of pods."),
            layout.integer("Current", "The number of pods."),
            layout.integer("Ready", "The number of ready pods."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _replica_set_cells,
    ),
    rules=rules.KINDS["ReplicaSet"],
    strategy=ReplicaSetStrategy,
)


class DeploymentStrategy(WorkloadStrategy):
    counts_annotations = True

    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        for field, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
            spec.setdefault(field, value)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        restore_fields(subject.metadata, old.metadata, "labels")
        super().update_status(subject, old, write)


def _deployment_cells(deployment: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(deployment, "spec"), cells.part(deployment, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    since = cells.since_creation(deployment, now)
    return [cells.name(deployment), ready, *counts, since, *cells.template(deployment, absent="")]


DEPLOYMENT: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="deployments",
    kind="Deployment",
    namespaced=True,
    short_names=("deploy",),
    categories=("all",),
    subresources=(scaleform.SUBRESOURCE, resources.status(("spec",), ("metadata", "labels"))),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "The numbers of ready and of desired pods."),
            layout.text("Up-to-date", "The number of pods of the current template."),
            layout.text("Available", "The number of available pods."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _deployment_cells,
    ),
    rules=rules.KINDS["Deployment"],
    strategy=DeploymentStrategy,
)


_COUNTS: Final = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")


_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""Annotation with the number of changes of the template."""


class DaemonSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        spec.setdefault("revisionHistoryLimit", 10)
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        super().default(content, metadata)
        metadata["annotations"] = {_TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = dict.fromkeys(_COUNTS, 0)
        metadata["annotations"] = {**metadata["annotations"], _TEMPLATE_GENERATION: "1"}

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        # Old kubelets and tools read it in place of the generation; it counts changes of the template only.
        number = int((old.metadata.get("annotations") or {}).get(_TEMPLATE_GENERATION) or 0)
        is_same = documents.same(subject.content["spec"]["template"], old.content["spec"]["template"])
        own = subject.metadata.get("annotations") or {}
        subject.metadata["annotations"] = {**own, _TEMPLATE_GENERATION: str(number if is_same else number + 1)}
        super().update(subject, old, write)


def _daemon_set_cells(daemon_set: Document, now: datetime) -> layout.Cells:
    status, spec = cells.part(daemon_set, "status"), cells.part(daemon_set, "spec")
    counts = ("desired", "current"), ("updated",)
    numbers = [status.get(f"{each}NumberScheduled", 0) for each in counts[0]]
    numbers += [status.get("numberReady", 0), status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)]
    node_selector = cells.part(cells.part(cells.part(spec, "template"), "spec"), "nodeSelector")
    nodes = ",".join(f"{key}={value}" for key, value in sorted(node_selector.items())) or "<none>"
    since = cells.since_creation(daemon_set, now)
    return [cells.name(daemon_set), *numbers, nodes, since, *cells.template(daemon_set, absent="<none>")]


DAEMON_SET: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="daemonsets",
    kind="DaemonSet",
    namespaced=True,
    short_names=("ds",),
    categories=("all",),
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.integer("Desired", "The number of nodes that should run a pod."),
            layout.integer("Current", "The number of nodes that run a pod."),
            layout.integer("Ready", "The number of nodes with a ready pod."),
            layout.integer("Up-to-date", "The number of nodes with a pod of the current template."),
            layout.integer("Available", "The number of nodes with an available pod."),
            layout.text("Node Selector", "The labels of the nodes."),
            layout.AGE,
            *layout.CONTAINERS,
        ),
        _daemon_set_cells,
    ),
    rules=rules.KINDS["DaemonSet"],
    strategy=DaemonSetStrategy,
)


class StatefulSetStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        super().default_spec(spec)
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("partition", 0)
            rolling.setdefault("maxUnavailable", 1)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not policy.get(field):
                policy[field] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            volumes.default_claim(claim)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0, "availableReplicas": 0}

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        yield from super().warnings(content, subject)
        if content["spec"].get("revisionHistoryLimit", 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
                "recommended"
            )


def _stateful_set_cells(stateful_set: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(stateful_set, "spec"), cells.part(stateful_set, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    containers = cells.template(stateful_set, absent="")[:2]
    return [cells.name(stateful_set), ready, cells.since_creation(stateful_set, now), *containers]


STATEFUL_SET: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="statefulsets",
    kind="StatefulSet",
    namespaced=True,
    short_names=("sts",),
    categories=("all",),
    subresources=(scaleform.SUBRESOURCE, resources.status()),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "The numbers of ready and of desired pods."),
            layout.AGE,
            *layout.CONTAINERS[:2],
        ),
        _stateful_set_cells,
    ),
    rules=rules.KINDS["StatefulSet"],
    strategy=StatefulSetStrategy,
)
