"""Shortages of a node's own resources in numbers: what it has, what pods use, and what a pod and its claims add.

Devices may need cpu, memory and huge pages of their node in addition to the requests of containers (KEP-5517). A
shortage names every part, so that it shows which of them could be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from drachma import allocator, errors
from drachma.accounting import requests, resourcenames
from drachma.claims import podclaims
from drachma.scheduler.cycle.decision import Unfit
from drachma.scheduler.snapshot import nodeclass, nodeinfo
from drachma.simulate import simulation
from drachma.values import quantity

_INSUFFICIENT: Final = "Insufficient "
_MOST: Final = 3


class ResourceShortage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Amounts of one resource on one node."""

    node: str
    resource: str
    allocatable: str
    used: str
    """Amount that pods on the node use."""
    requested: str
    """Amount that the pod requests, without its claims."""
    claims: dict[str, str] = {}
    """Amounts that claims add to the requests of the pod, by claim."""
    missing: str
    """Amount by which the node has too little: the smallest change that would help."""

    def __str__(self) -> str:
        parts = [f"{self.allocatable} in total", f"{self.used} used by pods", f"{self.requested} requested by the pod"]
        parts += [f"{amount} added by claim {claim}" for claim, amount in self.claims.items()]
        return f"node {self.node}, {self.resource}: {', '.join(parts)}: {self.missing} too much"


def shortages(cluster: simulation.Simulation, unfit: Unfit) -> tuple[ResourceShortage, ...]:
    """Return the shortages of the first node of each rejection, at most a few."""
    shortages_found: list[ResourceShortage] = []
    for rejection, nodes in unfit.diagnosis.rejections:
        names = [each.removeprefix(_INSUFFICIENT) for each in rejection.reasons if each.startswith(_INSUFFICIENT)]
        slot = next(nodeclass.slots(nodes), None)
        if not names or slot is None:
            continue
        info = cluster.snapshot.nodes.at(slot)
        shortages_found += _node_shortages(
            cluster, unfit, info, [name for name in names if resourcenames.is_counted(name)]
        )
    return tuple(shortages_found[:_MOST])


def _node_shortages(
    cluster: simulation.Simulation, unfit: Unfit, info: nodeinfo.NodeInfo, names: list[str]
) -> Iterator[ResourceShortage]:
    own = requests.total(unfit.info.pod)
    additions = dict(_additions(cluster, unfit, info))
    for name in names:
        by_claim = {claim: amounts.get(name, 0) for claim, amounts in additions.items() if amounts.get(name)}
        account = info.ledger
        requested = resourcenames.counted(name, own.get(name, 0))
        added = resourcenames.counted(name, sum(by_claim.values()))
        lacking = requested + added - account.left(name)
        if lacking <= 0:
            continue
        yield ResourceShortage(
            node=info.name,
            resource=name,
            allocatable=_text(name, account.allocatable.get(name, 0)),
            used=_text(name, account.requested.get(name, 0)),
            requested=_text(name, requested),
            claims={claim: _text(name, resourcenames.counted(name, nanos)) for claim, nanos in by_claim.items()},
            missing=_text(name, lacking),
        )


def _additions(
    cluster: simulation.Simulation, unfit: Unfit, info: nodeinfo.NodeInfo
) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the claims of the pod with their additions, for the devices that they have or would get on the node."""
    books = cluster.snapshot.accountant
    entries = podclaims.resolve(unfit.info.pod, cluster.snapshot.claims)
    unallocated = [entry for entry in entries if entry.claim.status.allocation is None]
    node = cluster.snapshot.devices.at(info)
    try:
        outcome = node.allocator.allocate(info.place, [entry.claim for entry in unallocated])
        results = (
            dict(zip((entry.name for entry in unallocated), outcome.results, strict=True))
            if isinstance(outcome, allocator.Allocated)
            else {}
        )
        for entry in entries:
            allocation = entry.claim.status.allocation or results.get(entry.name)
            if allocation is not None:
                claim = str(entry.claim.metadata.name)
                footprint = books.claim_footprint(entry.claim, allocation, find=node.view.find)
                account = books.account(unfit.info.pod, {claim: (entry.name, footprint)})
                yield claim, requests.claim_additions(account.statuses)
    except errors.AllocationError:
        # The scheduler's message has the error.
        return


def _text(name: str, amount: int) -> str:
    if name == resourcenames.CPU:
        return str(quantity.Quantity.from_milli(amount, format=quantity.Format.DECIMAL_SI))
    return str(quantity.Quantity.from_int(amount, format=quantity.Format.BINARY_SI))
