"""Payment for claims that several workloads of a cluster queue share: by name, or as the claims of one group.

The first admitted workload pays. While it has quota, other workloads of the queue use the claim without a charge. When
it finishes, the workload that was admitted next takes over the same charge on the same flavors, so that the queue's
usage does not change. The last one gives it back. Everything follows from the accounts of the quota holders, so it is
the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from drachma.queueing import amounts, conditions
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.account import ClaimShare
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import workload
from drachma.queueing.workloads.requests import PodSetRequests

Shares = Mapping[str, ClaimShare]
"""Charges for the shared claims of a namespace, by name or by the key of a group's claim."""


def shares(wl: workload.Workload) -> Shares:
    """Return the claims that a quota holder shares, with their charges."""
    account = deviceaccount.read(wl)
    return account.claims if account is not None else {}


def paid_shares(devices: DeviceRequests, namespace: str, holders: Iterable[workload.Workload]) -> dict[str, ClaimShare]:
    """Return the claims that a workload shares and that quota holders of its queue pay for."""
    return {
        name: structs.replace(share, pod_sets=devices.shared[name].pod_sets) if share.entry else share
        for each in holders
        if each.metadata.namespace == namespace
        for name, share in shares(each).items()
        if name in devices.shared and devices.shared[name].uid == share.uid
    }


def unpaid_requests(devices: DeviceRequests | None, paid: Shares) -> DeviceRequests | None:
    """Return the requests that a workload has to pay for itself, if others pay for some of its claims."""
    if devices is None or not paid:
        return devices
    unpaid = {name: each for name, each in devices.shared.items() if name not in paid}
    return structs.replace(devices, shared=unpaid)


def inherited_charges(wl: workload.Workload, holders: Iterable[workload.Workload]) -> tuple[PodSetRequests, ...]:
    """Return the charges that a quota holder takes over for claims whose payer has lost its quota.

    ``holders`` are the quota holders of the same queue; the workload itself may be among them.
    """
    mine = {name: share for name, share in shares(wl).items() if not share.is_paid}
    if not mine:
        return ()
    earlier_holders = [
        each
        for each in holders
        if each.metadata.namespace == wl.metadata.namespace and each.metadata.uid != wl.metadata.uid
    ]
    inheritance = []
    for name, share in sorted(mine.items()):
        rivals = [
            (each, theirs) for each in earlier_holders if (theirs := shares(each).get(name)) and theirs.uid == share.uid
        ]
        is_paid = any(theirs.is_paid for _, theirs in rivals)
        if not is_paid and all(_turn(wl) < _turn(each) for each, _ in rivals):
            inheritance.append(PodSetRequests(f"claim {name}", amounts.request_amounts(share.charge), 1, share.flavors))
    return tuple(inheritance)


def _turn(wl: workload.Workload) -> tuple[str, str]:
    """Return the sort key of holders: admission time, then uid."""
    reserved = conditions.find(wl.status.conditions, conditions.QUOTA_RESERVED)
    since = reserved.last_transition_time if reserved is not None else None
    return ("" if since is None else since.isoformat(), wl.metadata.uid)
