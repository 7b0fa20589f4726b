"""Shortages: of which resources a node has too little left for what is asked, and whether evicting pods could help.

Asked by whoever checks requests, or what devices mean, against a ledger.
"""

from __future__ import annotations

from collections.abc import Iterable

from drachma.accounting import ledger, resourcenames


def resources(
    asked: resourcenames.Amounts, account: ledger.Ledger, *, delegated: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The resources of which a node has too little left; it need not have ``delegated`` ones at all."""
    allocatable, requested = account.allocatable, account.requested
    short = []
    for name, amount in asked:
        has = allocatable.get(name, 0)
        if amount > has - requested.get(name, 0) and not (has == 0 and name in delegated):
            short.append(name)
    return tuple(short)


def is_resolvable(short: Iterable[str], asked: resourcenames.Amounts, *, account: ledger.Ledger) -> bool:
    """Whether the node would be large enough if it were empty."""
    amounts = dict(asked)
    return all(amounts[name] <= account.allocatable.get(name, 0) for name in short)
