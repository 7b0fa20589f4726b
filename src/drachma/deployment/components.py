"""Components that run on a cluster: their arguments, their permissions and their ports.

Permissions are the cluster's own roles for the same work where there are some (``system:kube-scheduler``,
``system:controller:*``), so that they grow with Kubernetes. Rules of our own are for work that Kubernetes has no role
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.controllers import descriptors
from drachma.queueing.configuration import frameworks

PORT: Final = 10443
"""Port of the status page of every component."""

_READ: Final = ("get", "list", "watch")
_KUEUE: Final = "kueue.x-k8s.io"
_ALL_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a role."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...] = _READ


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One deployment."""

    name: str
    arguments: tuple[str, ...]
    lease: str
    """Name of the lease by which one of its replicas leads; empty for a component that runs once."""
    lease_namespace: str = ""
    """Namespace of that lease if it is not the one of the component."""
    roles: tuple[str, ...] = ()
    """ClusterRoles of the cluster that it is bound to."""
    rules: tuple[Rule, ...] = ()
    """Permissions beyond these roles."""


def scheduler(name: str, *, has_neighbours: bool = False) -> Component:
    """Return a scheduler for the pods with a ``schedulerName``.

    With ``has_neighbours`` it undoes the later of two allocations if another scheduler uses the same devices.
    """
    neighbours = ("--neighbours",) if has_neighbours else ()
    return Component(
        name="scheduler",
        arguments=("scheduler", f"--scheduler-name={name}", *neighbours),
        lease=name,
        roles=("system:kube-scheduler", "system:volume-scheduler"),
    )


def controllers(names: str) -> Component:
    """Return a process of some controllers, each of which must be off in kube-controller-manager.

    Raises:
        errors.InvalidValueError: a name is not one of a controller.
    """
    accounts = {each.account or each.name for each in descriptors.chosen(names)}
    roles = tuple(f"system:controller:{account}" for account in sorted(accounts) if not account.startswith("system:"))
    return Component(
        name="controllers",
        arguments=("controllers", f"--controllers={names}"),
        lease="drachma-controllers",
        roles=("system:kube-controller-manager", *roles),
    )


def exporter() -> Component:
    """Return the exporter of metrics about the cluster, which reads and writes nothing."""
    kinds = ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices")
    return Component(
        name="exporter",
        arguments=("exporter",),
        lease="",
        rules=(
            Rule(groups=("resource.k8s.io",), resources=kinds),
            Rule(groups=("",), resources=("pods",)),
        ),
    )


def _rules_of_jobs() -> Iterator[Rule]:
    """Yield the rules for kinds of jobs of other projects, which are watched as soon as they are installed."""
    names = (frameworks.JOB_SET, frameworks.LEADER_WORKER_SET, *frameworks.INSTALLED_JOBS)
    kinds = [frameworks.KINDS[name] for name in names]
    for group in sorted({kind.group for kind in kinds}):
        plurals = [f"{kind.kind.lower()}s" for kind in kinds if kind.group == group]
        yield Rule(groups=(group,), resources=tuple(plurals), verbs=("get", "list", "patch", "update", "watch"))
        parts = [f"{plural}/{part}" for plural in plurals for part in ("finalizers", "status")]
        yield Rule(groups=(group,), resources=tuple(parts), verbs=("get", "patch", "update"))


def queueing() -> Component:
    """Return the queues, instead of Kueue's controller: they wait for its lease, so that only one of both admits."""
    return Component(
        name="queueing",
        arguments=("queueing",),
        lease="c1f6bfd2.kueue.x-k8s.io",
        lease_namespace="kueue-system",
        rules=(
            Rule(groups=(_KUEUE,), resources=("*",), verbs=_ALL_VERBS),
            Rule(groups=("batch",), resources=("jobs",), verbs=("get", "list", "patch", "update", "watch")),
            Rule(groups=("batch",), resources=("jobs/finalizers", "jobs/status"), verbs=("get", "patch", "update")),
            *_rules_of_jobs(),
            Rule(groups=("",), resources=("pods",), verbs=("delete", "get", "list", "patch", "update", "watch")),
            Rule(groups=("",), resources=("pods/finalizers", "pods/status"), verbs=("get", "patch", "update")),
            Rule(groups=("",), resources=("configmaps", "limitranges", "namespaces", "nodes")),
            Rule(groups=("",), resources=("podtemplates",), verbs=_ALL_VERBS),
            Rule(groups=("autoscaling.x-k8s.io",), resources=("provisioningrequests",), verbs=_ALL_VERBS),
            Rule(groups=("", "events.k8s.io"), resources=("events",), verbs=("create", "patch", "update")),
            Rule(groups=("apps",), resources=("deployments", "replicasets", "statefulsets")),
            Rule(groups=("node.k8s.io",), resources=("runtimeclasses",)),
            Rule(groups=("resource.k8s.io",), resources=("*",)),
            Rule(groups=("scheduling.k8s.io",), resources=("priorityclasses",)),
            Rule(groups=("apiextensions.k8s.io",), resources=("customresourcedefinitions",)),
        ),
    )
