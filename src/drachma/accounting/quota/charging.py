"""Whether there is room for a write in the quotas of its namespace, and what it charges to each.

Upstream's decision, in its order and words: quotas that count nothing of the object, or not in its scope, do not
matter; an object must state what a quota limits; a quota whose use nobody has counted yet refuses; then the change in
use must fit into what is left. Limits are those in the quota's status, which its controller takes over from the spec.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from drachma.accounting.quota import amounts, evaluator, scopes
from drachma.api import meta, resourcequota
from drachma.api.resourcequota import ResourceQuota
from drachma.values import quantity

_Charge: TypeAlias = dict[str, quantity.Quantity]


class Refusal(msgspec.Struct, frozen=True):
    """There is no room; ``message`` says where and how much."""

    message: str


def charges(
    judge: evaluator.Evaluator[Any],
    change: evaluator.Change[Any],
    quotas: Iterable[ResourceQuota],
    *,
    facts: evaluator.Facts,
) -> dict[str, _Charge] | Refusal:
    """What a write adds to the use of each quota, by the quotas' names; those that it does not touch are left out."""
    if change.subresource not in judge.subresources or not judge.concerns(change):
        return {}
    concerned = [quota for quota in quotas if _concerns(quota, change.new, judge, facts)]
    for quota in concerned:
        refusal = _unmet(quota, change.new, judge, facts)
        if refusal:
            return Refusal(refusal)
    if not concerned:
        return {}
    usage = judge.usage(change.new, facts)
    negative = [name for name, amount in usage.items() if amount < amounts.ZERO]
    if negative:
        return Refusal(f"quota usage is negative for resource(s): {amounts.names_text(negative)}")
    charged: dict[str, _Charge] = {}
    for quota in concerned:
        before: amounts.Amounts = {}
        if change.old is not None and _concerns(quota, change.old, judge, facts):
            before = judge.usage(change.old, facts)
        charge = amounts.masked(amounts.excess(usage, before), quota.status.hard)
        if not charge:
            continue
        refusal = _excess(quota, charge)
        if refusal and not is_owed(change.subresource):
            return Refusal(refusal)
        charged[quota.metadata.name] = charge
    return charged


def is_owed(subresource: str) -> bool:
    """Whether a write is charged even where there is no room: a status tells of what is so already."""
    return subresource == "status"


def _concerns(
    quota: ResourceQuota, subject: meta.Object, judge: evaluator.Evaluator[Any], facts: evaluator.Facts
) -> bool:
    if not judge.counted(quota.status.hard, facts):
        return False
    return all(judge.is_in_scope(subject, requirement) for requirement in scopes.of(quota.spec))


def _unmet(quota: ResourceQuota, subject: meta.Object, judge: evaluator.Evaluator[Any], facts: evaluator.Facts) -> str:
    name = quota.metadata.name
    counted = judge.counted(quota.status.hard, facts)
    omission = judge.omission(subject, counted)
    if omission:
        return f"failed quota: {name}: {omission}"
    if not counted <= quota.status.used.keys():
        return f"status unknown for quota: {name}, resources: {amounts.names_text(counted)}"
    return ""


def _exceeded(charge: amounts.Amounts, status: resourcequota.ResourceQuotaStatus) -> set[str]:
    used = status.used
    return {
        name for name, amount in charge.items() if (used[name] + amount if name in used else amount) > status.hard[name]
    }


def _excess(quota: ResourceQuota, charge: _Charge) -> str:
    status = quota.status
    exceeded = _exceeded(charge, status)
    if not exceeded:
        return ""
    requested, used, limited = (
        amounts.text(amounts.masked(each, exceeded)) for each in (charge, status.used, status.hard)
    )
    return f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {used}, limited: {limited}"
