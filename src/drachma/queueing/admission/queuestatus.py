"""Status of queues: their Active condition, and the quota reserved and used in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.queueing import amounts, conditions
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.conditions import truncate
from drachma.queueing.kinds import admissioncheck, clusterqueue, localqueue
from drachma.queueing.workloads import requests, workloadstate
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import quantity, quotation


class Readiness(NamedTuple):
    """Active condition of a queue."""

    is_active: bool
    reason: str
    message: str


def readiness(
    queue: clusterqueue.ClusterQueue | None,
    *,
    flavors: Container[str],
    checks: Mapping[str, admissioncheck.AdmissionCheck],
    missing_topologies: Mapping[str, str] | None = None,
) -> Readiness:
    """Return the readiness of a cluster queue, with everything that keeps it from admitting workloads.

    ``missing_topologies`` are topologies that do not exist, by the flavors that name them.
    """
    if queue is None:
        return Readiness(is_active=False, reason="NotFound", message="ClusterQueue not found")
    if queue.metadata.deletion_timestamp is not None:
        message = "Can't admit new workloads; clusterQueue is terminating"
        return Readiness(is_active=False, reason="Terminating", message=message)
    obstacles = tuple(_obstacles(queue.spec, flavors, checks, missing_topologies or {}))
    if not obstacles:
        return Readiness(is_active=True, reason="Ready", message="Can admit new workloads")
    message = f"Can't admit new workloads: {', '.join(text for _, text in obstacles)}."
    return Readiness(is_active=False, reason=obstacles[0][0], message=truncate(message))


def _obstacles(
    spec: clusterqueue.ClusterQueueSpec,
    flavors: Container[str],
    checks: Mapping[str, admissioncheck.AdmissionCheck],
    missing_topologies: Mapping[str, str],
) -> Iterable[tuple[str, str]]:
    if spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
        yield "Stopped", "is stopped"
    flavor_names = [flavor.name for group in spec.resource_groups for flavor in group.flavors]
    missing_names = [name for name in flavor_names if name not in flavors]
    if missing_names:
        yield "FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing_names)}"
    strategy = spec.admission_checks_strategy
    rules = strategy.admission_checks if strategy is not None else ()
    missing_names = sorted({rule.name for rule in rules if rule.name not in checks})
    if missing_names:
        yield "AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(missing_names)}"
    present = [(rule, checks[rule.name]) for rule in rules if rule.name in checks]
    inactive = sorted(
        {rule.name for rule, check in present if not conditions.is_true(check.status.conditions, conditions.ACTIVE)}
    )
    if inactive:
        yield "AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(inactive)}"
    dispatching = sorted(
        {rule.name for rule, check in present if check.spec.controller_name == admissioncheck.MULTI_KUEUE}
    )
    provisioning = sorted(
        {rule.name for rule, check in present if check.spec.controller_name == admissioncheck.PROVISIONING}
    )
    partial = sorted({rule.name for rule, _ in present if rule.name in dispatching and rule.on_flavors})
    if len(dispatching) > 1:
        text = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: "
        yield "MultipleMultiKueueAdmissionChecks", text + ",".join(dispatching)
    if partial:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}"
        yield "MultiKueueAdmissionCheckAppliedPerFlavor", text
    if dispatching and provisioning:
        text = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
        yield "MultiKueueWithProvisioningRequest", f"{text}{','.join(dispatching)}, {','.join(provisioning)}"
    for name in flavor_names if not dispatching else ():
        # Another cluster places the pods of workloads that are dispatched to it.
        if name in missing_topologies:
            topology, flavor = quotation.quote(missing_topologies[name]), quotation.quote(name)
            yield "TopologyNotFound", f"there is no Topology {topology} for TAS flavor {flavor}"


def local_readiness(local_queue: localqueue.LocalQueue, *, is_active: bool | None) -> Readiness:
    """Return the readiness of a local queue. ``is_active`` is that of its cluster queue, None if there is none."""
    if local_queue.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
        return Readiness(is_active=False, reason="Stopped", message="LocalQueue is stopped")
    if is_active is None:
        return Readiness(is_active=False, reason="ClusterQueueDoesNotExist", message=_CANNOT)
    if not is_active:
        return Readiness(is_active=False, reason="ClusterQueueIsInactive", message=_CANNOT)
    return Readiness(is_active=True, reason="Ready", message="Can submit new workloads to localQueue")


_CANNOT: Final = "Can't submit new workloads to clusterQueue"


class ResourceUsage(NamedTuple):
    """Usage of a resource, and the borrowed part of it."""

    name: str
    total: quantity.Quantity
    borrowed: quantity.Quantity


class FlavorUsage(NamedTuple):
    """Usage of a flavor."""

    name: str
    resources: tuple[ResourceUsage, ...]


class QueueUsage(msgspec.Struct, frozen=True):
    """Quota that workloads hold in a queue: reserved, and the admitted part of that."""

    reserved: tuple[FlavorUsage, ...]
    admitted: tuple[FlavorUsage, ...]
    reserving_workloads: int
    admitted_workloads: int


def usage(
    spec: clusterqueue.ClusterQueueSpec,
    node: Node,
    holders: Iterable[WorkloadInfo],
    *,
    binary: Container[str] = (),
) -> QueueUsage:
    """Return the quota that workloads hold in a cluster queue: flavors in the queue's order, resources by name."""
    reserved: dict[FlavorResource, int] = {}
    admitted: dict[FlavorResource, int] = {}
    reserving_count = admitted_count = 0
    for info in holders:
        reserving_count += 1
        _add(reserved, info.usage)
        if workloadstate.is_admitted(info.workload):
            admitted_count += 1
            _add(admitted, info.usage)
    return QueueUsage(
        _flavors(spec, node, reserved, binary),
        _flavors(spec, node, admitted, binary),
        reserving_count,
        admitted_count,
    )


def _add(total: dict[FlavorResource, int], more: requests.Usage) -> None:
    for key, amount in more.items():
        total[key] = amounts.plus(total.get(key, 0), amount)


def _flavors(
    spec: clusterqueue.ClusterQueueSpec, node: Node, used: requests.Usage, binary: Container[str]
) -> tuple[FlavorUsage, ...]:
    return tuple(
        FlavorUsage(
            flavor.name,
            tuple(
                _resource(FlavorResource(flavor.name, name), node, used, binary)
                for name in sorted(group.covered_resources)
            ),
        )
        for group in spec.resource_groups
        for flavor in group.flavors
    )


def _resource(key: FlavorResource, node: Node, used: requests.Usage, binary: Container[str]) -> ResourceUsage:
    total = used.get(key, 0)
    # A queue without a cohort cannot borrow, whatever its usage is.
    borrowed = max(0, amounts.minus(total, node.quota(key).nominal)) if node.parent is not None else 0
    return ResourceUsage(
        key.resource,
        amounts.to_quantity(key.resource, total, binary=binary),
        amounts.to_quantity(key.resource, borrowed, binary=binary),
    )
