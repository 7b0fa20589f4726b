"""Claims that are allocated: the nodes on which a pod can use them, and obstacles to that."""

from __future__ import annotations

import functools

from drachma.accounting import footprint
from drachma.api import gates, pod, resourceclaim
from drachma.claims import podclaims, reservation
from drachma.scheduler.framework import nodeselectors
from drachma.scheduler.plugins.dynamicresources import bindingconditions, options, verdicts
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes

_Allocation = resourceclaim.AllocationResult


def usable_on(allocation: _Allocation, nodes: snapshotnodes.Nodes, *, among: int) -> int:
    """Return the nodes on which an allocation can be used."""
    here = among & _available_on(allocation, nodes, among=among)
    if here and any(result.skip_node_operations for result in allocation.devices.results):
        feature = gates.Gate.OPTIONAL_NODE_OPERATIONS
        ask = functools.partial(_declares, feature)
        here &= nodes.properties.classes(("declares", feature), ask, among=here).get(True, 0)
    return here


def is_hopeless(claim: resourceclaim.ResourceClaim, options: options.Options) -> bool:
    """Return True if the devices of an allocated claim will not become ready any more."""
    if not options.has_binding_conditions:
        return False
    readiness = bindingconditions.judge(claim).readiness
    if readiness is bindingconditions.Readiness.WAITING:
        return bindingconditions.is_late(claim, now=options.now(), timeout=options.binding_seconds)
    return readiness is bindingconditions.Readiness.FAILED


def is_unshareable(
    claim: resourceclaim.ResourceClaim,
    allocation: _Allocation,
    *,
    user: pod.Pod,
    consumer: reservation.Consumer,
    snapshot: Snapshot,
) -> bool:
    """Return True if another pod uses a claim whose devices are a node's own resources.

    Differs from upstream: that is also the case if the devices are no longer published, and only the status of a pod
    that uses the claim shows it. Each further pod would count as if it took nothing of the node.
    """
    if not claim.status.reserved_for:
        return False
    if reservation.is_reserved_for(claim, consumer) and not _has_other_users(claim, user, consumer, snapshot):
        return False
    if not footprint.has_mapping(allocation, snapshot.devices.find) and not _is_mapped_for_users(claim, snapshot.nodes):
        return False
    with verdicts.abort_on_allocation_error():
        return not snapshot.accountant.may_be_shared(claim, allocation)


def _has_other_users(
    claim: resourceclaim.ResourceClaim, user: pod.Pod, consumer: reservation.Consumer, snapshot: Snapshot
) -> bool:
    """Return True if a claim is reserved for the group of a pod, and another pod of the group with a node uses it."""
    if consumer is user:
        return False
    residents = (snapshot.nodes.resident(uid) for uid in snapshot.gangs.member_uids(user) if uid != user.metadata.uid)
    return any(each is not None and claim.metadata.name in podclaims.names(each) for each in residents)


def _is_mapped_for_users(claim: resourceclaim.ResourceClaim, nodes: snapshotnodes.Nodes) -> bool:
    """Return True if the status of a pod that uses a claim maps its devices to resources of the node."""
    for consumer in claim.status.reserved_for:
        booked = nodes.resident(consumer.uid)
        if booked is not None:
            statuses = booked.status.node_allocatable_resource_claim_statuses
            if any(entry.mapped() and entry.resource_claim_name == claim.metadata.name for entry in statuses):
                return True
    return False


def _available_on(allocation: _Allocation, nodes: snapshotnodes.Nodes, *, among: int) -> int:
    selector = allocation.node_selector
    return among if selector is None else nodeselectors.matching_nodes(selector, nodes, among=among)


def _declares(feature: str, info: nodeinfo.NodeInfo) -> bool:
    return feature in info.place.declared_features
