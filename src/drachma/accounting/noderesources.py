"""Resources of a node that the devices of a pod's claims may use (KEP-5517).

The pod's own requests come first. If the pod states a resource as a whole, claims are inside that budget; otherwise
they come on top of the containers, and the node must have both.
"""

from __future__ import annotations

from drachma.accounting import ledger, requests, resourcenames
from drachma.api import pod
from drachma.values import names


def claimable_amounts(
    user: pod.Pod, account: ledger.Ledger, *, claims: requests.ClaimStatuses = ()
) -> tuple[tuple[str, int], ...]:
    """Return the amounts in billionths that further claims of a pod may use on a node, by resource in order.

    ``claims`` are the additions of claims that are allocated already. An amount is negative if the node lacks even
    what the pod needs without further claims.
    """
    stated = user.spec.resources
    budget = {} if stated is None else {name: amount.nanos for name, amount in stated.requests.items()}
    own = requests.total(user, claims=claims)
    inside = requests.containers(user, claims=claims)
    room: dict[str, int] = {}
    for name in sorted({*account.allocatable, *own}):
        if not requests.is_budgeted(name) and not names.is_huge_page_resource(name):
            continue
        if name in budget:
            room[name] = budget[name] - inside.get(name, 0)
        else:
            remainder = account.left(name) - resourcenames.counted(name, own.get(name, 0))
            room[name] = resourcenames.exact(name, remainder)
    return tuple(room.items())
