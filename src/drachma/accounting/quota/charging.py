"""Charges of a write to the quotas of its namespace, or a refusal.

Upstream's decision, in its order and words. Quotas that count nothing of the object, or not in its scope, do not
matter. An object must state what a quota limits. A quota without a counted use refuses. Then the change in use must fit
into what is left. Limits are those in the quota's status, which its controller copies from the spec.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from drachma.accounting.quota import evaluator
from drachma.api import meta, resourcequota
from drachma.api.resourcequota import ResourceQuota
from drachma.values import quantity

_Charge: TypeAlias = dict[str, quantity.Quantity]


class Refusal(msgspec.Struct, frozen=True):
    """Refusal of a write; the message names the quota and the amounts."""

    message: str


def charges(
    judge: evaluator.Evaluator[Any],
    change: evaluator.Change[Any],
    quotas: Iterable[ResourceQuota],
    *,
    facts: evaluator.Facts,
) -> dict[str, _Charge] | Refusal:
    """Return the charges of a write by the names of quotas, without quotas that it does not touch, or a refusal."""
    if change.subresource not in judge.subresources or not judge.concerns(change):
        return {}
    concerned = [quota for quota in quotas if _concerns(quota, change.new, judge, facts)]
    for quota in concerned:
        refusal = _unmet(quota, change, judge, facts)
        if refusal:
            return Refusal(refusal)
    if not concerned:
        return {}
    usage = judge.usage(change.new, facts)
    negative = [name for name, amount in usage.items() if amount < evaluator.ZERO]
    if negative:
        return Refusal(f"quota usage is negative for resource(s): {evaluator.names_text(negative)}")
    charged: dict[str, _Charge] = {}
    for quota in concerned:
        before: evaluator.Amounts = {}
        if change.old is not None and _concerns(quota, change.old, judge, facts):
            before = judge.usage(change.old, facts)
        charge = evaluator.select_amounts(evaluator.excess(usage, before), quota.status.hard)
        if not charge:
            continue
        refusal = _excess(quota, charge)
        if refusal and change.subresource not in judge.owed:
            return Refusal(refusal)
        charged[quota.metadata.name] = charge
    return charged


def _concerns(
    quota: ResourceQuota, subject: meta.Object, judge: evaluator.Evaluator[Any], facts: evaluator.Facts
) -> bool:
    if not judge.counted(quota.status.hard, facts):
        return False
    return all(judge.is_in_scope(subject, requirement) for requirement in evaluator.scope_requirements(quota.spec))


def _unmet(
    quota: ResourceQuota, change: evaluator.Change[Any], judge: evaluator.Evaluator[Any], facts: evaluator.Facts
) -> str:
    name = quota.metadata.name
    limited_resources = judge.counted(quota.status.hard, facts)
    # A status is written by components, which cannot state more than the object does.
    omission = "" if change.subresource == "status" else judge.omission(change.new, limited_resources)
    if omission:
        return f"failed quota: {name}: {omission}"
    if not limited_resources <= quota.status.used.keys():
        return f"status unknown for quota: {name}, resources: {evaluator.names_text(limited_resources)}"
    return ""


def _exceeded(charge: evaluator.Amounts, status: resourcequota.ResourceQuotaStatus) -> set[str]:
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
        evaluator.amounts_text(evaluator.select_amounts(each, exceeded)) for each in (charge, status.used, status.hard)
    )
    return f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {used}, limited: {limited}"
