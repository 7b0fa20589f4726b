"""The columns of every kind's table, and how a document fills them.

Names, types and priorities are Kubernetes', since kubectl prints them; descriptions are ours. Columns of priority 1 are
shown by ``-o wide`` only. Kinds without columns of their own have name and age.

Public: ``of(resource) -> Layout``; ``Layout.columns``, ``Layout.cells(document, now)``.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from drachma.server.presentation import cells
from drachma.server.surface import resources


class Column(msgspec.Struct, frozen=True):
    """One column, with the members that a Table writes, in their order."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Layout(msgspec.Struct, frozen=True):
    """The columns of a kind and the function that fills them."""

    columns: tuple[Column, ...]
    cells: Callable[[cells.Document, datetime], cells.Cells]


def of(resource: resources.Resource) -> Layout:
    """The layout of a resource's tables."""
    return _LAYOUTS.get(resource.key, _PLAIN)


_NAME: Final = Column("Name", format="name", description="The object's name, unique within its namespace and kind.")
_AGE: Final = Column("Age", description="How long ago the object was created.")


def _wide(name: str, description: str) -> Column:
    return Column(name, description=description, priority=1)


def _text(name: str, description: str) -> Column:
    return Column(name, description=description)


def _integer(name: str, description: str) -> Column:
    return Column(name, "integer", description=description)


_CONTAINERS: Final = (
    _wide("Containers", "The names of the containers in the template."),
    _wide("Images", "The images of the containers in the template."),
    _wide("Selector", "Which pods belong to the object."),
)


_PLAIN: Final = Layout((_NAME, _AGE), cells.plain)
_LAYOUTS: Final[Mapping[str, Layout]] = {
    "pods": Layout(
        (
            _NAME,
            _text("Ready", "How many of the pod's containers are ready."),
            _text("Status", "The state of the pod in one word."),
            _text("Restarts", "How often containers were restarted, and when last."),
            _AGE,
            _wide("IP", "The pod's address."),
            _wide("Node", "Where the pod runs or will run."),
            _wide("Nominated Node", "Where the pod will run once others have made room."),
            _wide("Readiness Gates", "How many of the pod's extra conditions for readiness hold."),
        ),
        cells.pod,
    ),
    "nodes": Layout(
        (
            _NAME,
            _text("Status", "Whether the node is ready and takes pods."),
            _text("Roles", "What the node is for, from its labels."),
            _AGE,
            _text("Version", "The version of the node agent."),
            _wide("Internal-IP", "The node's address inside the cluster."),
            _wide("External-IP", "The node's address outside the cluster."),
            _wide("OS-Image", "The operating system."),
            _wide("Kernel-Version", "The kernel and its architecture."),
            _wide("Container-Runtime", "What runs the containers."),
        ),
        cells.node,
    ),
    "namespaces": Layout(
        (_NAME, _text("Status", "Whether the namespace is active or going away."), _AGE), cells.namespace
    ),
    "events": Layout(
        (
            _text("Last Seen", "When it last happened."),
            _text("Type", "Normal or Warning."),
            _text("Reason", "Why the event was reported, in one word."),
            _text("Object", "What the event is about."),
            _wide("Subobject", "Which part of the object it is about."),
            _wide("Source", "Who reported it."),
            _text("Message", "What happened."),
            _wide("First Seen", "When it first happened."),
            _wide("Count", "How often it happened."),
            Column("Name", format="name", description=_NAME.description, priority=1),
        ),
        cells.event,
    ),
    "resourcequotas": Layout(
        (_NAME, _text("Request", "Used and allowed requests."), _text("Limit", "Used and allowed limits."), _AGE),
        cells.quota,
    ),
    "batch/jobs": Layout(
        (
            _NAME,
            _text("Status", "How far the job is."),
            _text("Completions", "How many pods succeeded, of how many."),
            _text("Duration", "How long the job ran or has been running."),
            _AGE,
            *_CONTAINERS,
        ),
        cells.job,
    ),
    "apps/deployments": Layout(
        (
            _NAME,
            _text("Ready", "How many pods are ready, of how many."),
            _text("Up-to-date", "How many pods are of the current template."),
            _text("Available", "How many pods have been ready for long enough."),
            _AGE,
            *_CONTAINERS,
        ),
        cells.deployment,
    ),
    "apps/replicasets": Layout(
        (
            _NAME,
            _integer("Desired", "How many pods there should be."),
            _integer("Current", "How many pods there are."),
            _integer("Ready", "How many pods are ready."),
            _AGE,
            *_CONTAINERS,
        ),
        cells.replica_set,
    ),
    "secrets": Layout(
        (_NAME, _text("Type", "What the secret is for."), _text("Data", "How many entries there are."), _AGE),
        cells.secret,
    ),
    "configmaps": Layout((_NAME, _text("Data", "How many entries there are."), _AGE), cells.config_map),
    "coordination.k8s.io/leases": Layout((_NAME, _text("Holder", "Who holds the lease."), _AGE), cells.lease),
    "scheduling.k8s.io/priorityclasses": Layout(
        (
            _NAME,
            _integer("Value", "The priority that pods of the class have."),
            Column("Global-Default", "boolean", description="Whether pods without a class get this one."),
            _AGE,
            _text("PreemptionPolicy", "Whether pods of the class may push others aside."),
        ),
        cells.priority_class,
    ),
    "resource.k8s.io/resourceclaims": Layout(
        (_NAME, _text("State", "Whether the claim is allocated, reserved, or on its way out."), _AGE), cells.claim
    ),
    "resource.k8s.io/resourceslices": Layout(
        (
            _NAME,
            _text("Node", "The node whose devices these are."),
            _text("Driver", "The driver that published the slice."),
            _text("Pool", "The pool that the slice is part of."),
            _AGE,
        ),
        cells.device_slice,
    ),
    "resource.k8s.io/devicetaintrules": Layout(
        (
            _NAME,
            _text("Key", "The key of the taint."),
            _text("Value", "The value of the taint."),
            _text("Effect", "What the taint does to claims and pods that do not tolerate it."),
            _text("TimeAdded", "How long ago the taint was added."),
            _AGE,
        ),
        cells.taint_rule,
    ),
}
