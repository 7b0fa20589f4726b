"""Use of a quota, counted from the objects of its namespace."""

from collections.abc import Iterable
from typing import Any

from drachma.accounting.quota import evaluator
from drachma.api import meta, resourcequota
from drachma.values import quantity


def used(
    spec: resourcequota.ResourceQuotaSpec,
    kinds: Iterable[tuple[evaluator.Evaluator[Any], Iterable[meta.Object]]],
    *,
    facts: evaluator.Facts,
) -> dict[str, quantity.Quantity]:
    """Return the use of each limited resource by the objects of each kind, without resources that no kind uses."""
    requirements = evaluator.scope_requirements(spec)
    countable: set[str] = set()
    total: dict[str, quantity.Quantity] = {}
    for judge, objects in kinds:
        limited_resources = judge.counted(spec.hard, facts)
        if not limited_resources:
            continue
        countable |= limited_resources
        for subject in objects:
            if all(judge.is_in_scope(subject, requirement) for requirement in requirements):
                total = evaluator.add_amounts(total, judge.usage(subject, facts))
    return {name: total.get(name, evaluator.ZERO) for name in sorted(countable)}
