"""Who pays for claims that several workloads of a cluster queue use by their name.

Who is admitted first pays. While a workload of the queue has quota, others use the claim for nothing; when the one
that pays is over, the one that was admitted next inherits that, with the same amount of the same flavors: the queue's
usage stays what it is. The last one gives it back. All of it follows from the accounts of the workloads that have
quota, so that it is the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from drachma.queueing import amounts, conditions
from drachma.queueing.devices import deviceaccount
from drachma.queueing.devices.deviceaccount import ClaimShare
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import workload
from drachma.queueing.workloads.requests import PodSetRequests

Shares = Mapping[str, ClaimShare]
"""What is paid for claims of a namespace, by name."""


def shares(of: workload.Workload) -> Shares:
    """The claims that a workload with quota uses by name, and what they are charged with."""
    account = deviceaccount.of(of)
    return account.claims if account is not None else {}


def covered(devices: DeviceRequests, namespace: str, holders: Iterable[workload.Workload]) -> dict[str, ClaimShare]:
    """Of the claims that a workload of a namespace names, those that holders of quota in its queue pay for."""
    return {
        name: share
        for each in holders
        if each.metadata.namespace == namespace
        for name, share in shares(each).items()
        if name in devices.named and devices.named[name].uid == share.uid
    }


def due(devices: DeviceRequests | None, paid: Shares) -> DeviceRequests | None:
    """What a workload has still to pay for, where others pay for some of its claims."""
    if devices is None or not paid:
        return devices
    named = {name: each for name, each in devices.named.items() if name not in paid}
    return structs.replace(devices, named=named)


def inherited(of: workload.Workload, holders: Iterable[workload.Workload]) -> tuple[PodSetRequests, ...]:
    """What a holder of quota uses for claims that nobody paid for at admission who still has quota.

    ``holders`` are those of the same queue; the workload itself may be among them.
    """
    mine = {name: share for name, share in shares(of).items() if not share.is_paid}
    if not mine:
        return ()
    others = [
        each
        for each in holders
        if each.metadata.namespace == of.metadata.namespace and each.metadata.uid != of.metadata.uid
    ]
    inheritance = []
    for name, share in sorted(mine.items()):
        rivals = [(each, theirs) for each in others if (theirs := shares(each).get(name)) and theirs.uid == share.uid]
        is_paid = any(theirs.is_paid for _, theirs in rivals)
        if not is_paid and all(_turn(of) < _turn(each) for each, _ in rivals):
            inheritance.append(PodSetRequests(f"claim {name}", amounts.of_list(share.charge), 1, share.flavors))
    return tuple(inheritance)


def _turn(of: workload.Workload) -> tuple[str, str]:
    """Who of two was admitted first; of those in the same second, one by its uid."""
    reserved = conditions.find(of.status.conditions, conditions.QUOTA_RESERVED)
    since = reserved.last_transition_time if reserved is not None else None
    return ("" if since is None else since.isoformat(), of.metadata.uid)
