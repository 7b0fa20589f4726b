"""Pod budgets: whether resources that a pod states as a whole cover what its claims add (KEP-5517).

The API server checks containers against the budget; what devices mean is known only once they are allocated.
"""

from __future__ import annotations

from drachma.accounting import requests
from drachma.api import pod
from drachma.values import names


def problem(of: pod.Pod, claims: requests.ClaimStatuses) -> str:
    """Why the budget does not do; empty if it does, or if there is none."""
    whole = of.spec.resources
    if whole is None or not claims:
        return ""
    asked = requests.containers(of, claims=claims)
    for name, budget in whole.requests.items():
        if requests.is_budgeted(name) and asked.get(name, 0) > budget.nanos:
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    if not whole.limits:
        return ""
    for name, limit in requests.container_limits(of, claims=claims).items():
        most = whole.limits.get(name)
        if names.is_huge_page_resource(name) and most is not None and limit > most.nanos:
            return (
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    for container in of.spec.containers:
        added = requests.of_container(claims, container.name)
        for name, amount in container.resources.limits.items():
            most = whole.limits.get(name)
            if names.is_huge_page_resource(name) or most is None:
                continue
            if amount.nanos + added.get(name, 0) > most.nanos:
                return (
                    f"pod level limit for {name} is insufficient to cover the limit "
                    f"and DRA overhead for container {container.name}"
                )
    return ""
