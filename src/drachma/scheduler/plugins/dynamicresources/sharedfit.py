"""Shared fit: whether a node has enough left for what a pod requests and what its devices are, together (KEP-5517)."""

from __future__ import annotations

import functools
from typing import NamedTuple

from drachma.accounting import accountant, ledger, policies, requests, resourcenames, shortage
from drachma.scheduler.snapshot import delegation, nodeinfo, podinfo


class SharedFit(NamedTuple):
    """What a node has too little of; nothing where there is enough."""

    reasons: tuple[str, ...]
    is_resolvable: bool


def question(info: podinfo.PodInfo, account: accountant.Account) -> functools.partial[SharedFit]:
    """The question whether a node has enough left; its arguments tell it from others."""
    exact = ledger.without(requests.total(info.pod, claims=account.statuses), account.settled)
    asked = tuple((name, amount) for name, amount in resourcenames.amounts(exact) if delegation.is_shared(name))
    return functools.partial(_fit, asked, () if account.settled is None else account.settled.pools)


def _fit(asked: resourcenames.Amounts, pools: tuple[policies.PoolUse, ...], info: nodeinfo.NodeInfo) -> SharedFit:
    account = info.ledger
    reasons: list[str] = []
    needed = dict(asked)
    for use in pools:
        pool = account.pools.get(use.claim)
        if pool is None:
            for name, amount in use.held:
                needed[name] = needed.get(name, 0) + amount
        left = dict(use.held) if pool is None else pool.left()
        reasons += (
            f"Insufficient {name} in the pool of claim {use.claim}"
            for name, amount in use.taken
            if amount > left.get(name, 0)
        )
    amounts = tuple(sorted(needed.items()))
    short = shortage.resources(amounts, account)
    reasons += (f"Insufficient {name}" for name in short)
    return SharedFit(tuple(reasons), bool(reasons) and shortage.is_resolvable(short, amounts, account=account))
