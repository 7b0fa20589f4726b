"""Shared fit: whether a node has enough left for what a pod requests and what its devices are, together (KEP-5517)."""

from __future__ import annotations

import functools
from typing import Final

from drachma.accounting import accountant, ledger, policies, requests, resourcenames
from drachma.scheduler import cluster, podinfo
from drachma.scheduler.plugins import noderesources
from drachma.values import names

_SHARED: Final = frozenset({resourcenames.CPU, resourcenames.MEMORY, resourcenames.EPHEMERAL_STORAGE})


def is_shared(name: str) -> bool:
    """Whether devices can stand for a resource of the node itself."""
    return name in _SHARED or names.is_huge_page_resource(name)


def question(info: podinfo.PodInfo, account: accountant.Account) -> functools.partial[noderesources.Fit]:
    """The question whether a node has enough left; its arguments tell it from others."""
    exact = ledger.without(requests.total(info.pod, claims=account.statuses), account.settled)
    asked = tuple((name, amount) for name, amount in resourcenames.amounts(exact) if is_shared(name))
    return functools.partial(_fit, asked, () if account.settled is None else account.settled.pools)


def _fit(
    asked: resourcenames.Amounts, pools: tuple[policies.PoolUse, ...], state: cluster.NodeState
) -> noderesources.Fit:
    account = state.ledger
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
    wanted = tuple(sorted(needed.items()))
    short = noderesources.shortage(wanted, account)
    reasons += (f"Insufficient {name}" for name in short)
    return noderesources.Fit(0, tuple(reasons), bool(reasons) and noderesources.is_resolvable(short, wanted, account))
