"""Delegation: requests of a pod that devices of claims provide, so that the node itself need not.

A device class may back extended resources (KEP-5004). With accounting policies, requests of containers may come out of
pools that claims hold (KEP-5517). The checks of node resources and of devices both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.accounting import ledger, resourcenames
from drachma.api import resourceclaim
from drachma.claims import podclaims
from drachma.scheduler.snapshot import devices as snapshotdevices
from drachma.scheduler.snapshot import podinfo
from drachma.scheduler.snapshot.snapshot import Snapshot
from drachma.values import names

_NOTHING: Final[frozenset[str]] = frozenset()
_SHARED: Final = frozenset({resourcenames.CPU, resourcenames.MEMORY, resourcenames.EPHEMERAL_STORAGE})


def demand(info: podinfo.PodInfo, snapshot: Snapshot) -> ledger.Demand:
    """Return the demand of a pod on the node itself."""
    devices = snapshot.devices
    if not snapshot.accountant.has_policies or not manages_node_resources(_claims(info, devices), devices):
        return info.demand
    own_amounts = tuple(entry for entry in info.demand.amounts if not is_shared(entry[0]))
    return info.demand._replace(amounts=own_amounts)


def extended(info: podinfo.PodInfo, devices: snapshotdevices.Devices) -> frozenset[str]:
    """Return the extended resources of a pod that a device class backs. The node itself need not have them."""
    if not info.extended_resources:
        return _NOTHING
    return frozenset(name for name in info.extended_resources if devices.names.get(name) is not None)


def manages_node_resources(claims: Iterable[resourceclaim.ResourceClaim], devices: snapshotdevices.Devices) -> bool:
    """Return True if a class of the claims says that its devices manage the node's own resources."""
    names_used: set[str] = set()
    for claim in claims:
        for request in claim.spec.devices.requests:
            alternatives = (request.exactly, *request.first_available)
            names_used.update(each.device_class_name for each in alternatives if each is not None)
    classes = map(devices.classes.get, names_used)
    return any(entry is not None and entry.spec.manages_node_resources for entry in classes)


def is_shared(name: str) -> bool:
    """Return True if devices can provide a resource of the node itself."""
    return name in _SHARED or names.is_huge_page_resource(name)


def _claims(info: podinfo.PodInfo, devices: snapshotdevices.Devices) -> list[resourceclaim.ResourceClaim]:
    if not info.pod.spec.resource_claims:
        return []
    try:
        return [entry.claim for entry in podclaims.resolve(info.pod, devices.claims)]
    except podclaims.MissingError:
        return []
