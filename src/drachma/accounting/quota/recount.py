"""How much of a quota is in use, counted anew from the objects of its namespace."""

from collections.abc import Iterable
from typing import Any

from drachma.accounting.quota import amounts, evaluator, scopes
from drachma.api import meta, resourcequota
from drachma.values import quantity


def used(
    spec: resourcequota.ResourceQuotaSpec,
    kinds: Iterable[tuple[evaluator.Evaluator[Any], Iterable[meta.Object]]],
    *,
    facts: evaluator.Facts,
) -> dict[str, quantity.Quantity]:
    """What the objects of each kind use of what the quota limits; resources that no kind uses are left out."""
    requirements = scopes.of(spec)
    countable: set[str] = set()
    total: dict[str, quantity.Quantity] = {}
    for judge, objects in kinds:
        counted = judge.counted(spec.hard, facts)
        if not counted:
            continue
        countable |= counted
        for subject in objects:
            if all(judge.is_in_scope(subject, requirement) for requirement in requirements):
                total = amounts.add(total, judge.usage(subject, facts))
    return {name: total.get(name, amounts.ZERO) for name in sorted(countable)}
