"""What an eviction does to the disruption budget of its pod: takes one disruption off it, if one is left.

The eviction commits it together with the rest of what it does. Refused, in upstream's words: what the budget does not
allow now, budgets that their controller has not looked at yet, and pods with more than one budget. Pods that have
ended, have not begun or go already are nobody's loss, so no budget is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta, poddisruptionbudget
from drachma.server import status
from drachma.server.admission import noderestriction
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import deletion, intent, update
from drachma.server.pipeline.services import Services
from drachma.server.surface import resources
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record
from drachma.validation import refusal, workload

_VERSION: Final = "v1"
_MANAGER: Final = "kube-apiserver"
"""Who owns what an eviction changes of a budget, as upstream."""

_FREE_PHASES: Final = frozenset({"Succeeded", "Failed", "Pending"})
_MOST_DISRUPTED: Final = 2000
"""Evicted pods that the controller has not seen go; more are not taken."""

_RETRY_SECONDS: Final = 10
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TOO_MANY: Final = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"

_Document = Mapping[str, Any]


class BudgetCharge:
    """The part of an eviction that concerns the budget of the pod."""

    def __init__(self, services: Services, call: Call, removal: deletion.Deletion) -> None:
        self.write: Final = removal.write
        self.is_dry_run: Final = removal.is_dry_run
        self._services = services
        self._surface = call.surface
        self._budgets = call.surface.find("policy", _VERSION, plural="poddisruptionbudgets")

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        pod = get(record.Key(write.resource.key, write.namespace, write.name))
        if pod is None:
            raise noderestriction.absence(write) or status.not_found(write.resource, write.name)
        if self._budgets is None or _is_free(pod.value):
            return intent.Leave(pod)
        several = tuple(self._of(pod.value, self._budgets))
        if len(several) > 1:
            raise status.unclassified(_SEVERAL)
        if not several or _may_go_unhealthy(pod.value, several[0].value):
            return intent.Leave(pod)
        _check(several[0].value)
        charged = self._write(several[0].key.name, self._budgets)
        wanted = options.WriteOptions(is_dry_run=self.is_dry_run)
        return update.Update(self._services, self._change, charged, wanted=wanted).decide(get)

    def _of(self, pod: _Document, budgets: resources.Resource) -> Iterator[record.Record]:
        own = pod["metadata"].get("labels") or {}
        for each in self._services.store.list(budgets.key, self.write.namespace).records:
            chosen = workload.matching((each.value.get("spec") or {}).get("selector"))
            if chosen is not None and chosen.matches(own):
                yield each

    def _write(self, name: str, budgets: resources.Resource) -> Write:
        return msgspec.structs.replace(
            self.write,
            served=self._surface.served(budgets),
            resource=budgets,
            version=_VERSION,
            name=name,
            subresource="status",
            verb="update",
            user_agent=_MANAGER,
        )

    def _change(self, stored: _Document | None) -> Subject:
        assert stored is not None, "the budget has just been listed"
        assert self._budgets is not None, "budgets are served, or none would have been found"
        # It may have been charged to the end since it was listed.
        _check(stored)
        subject = self._surface.strategy(self._budgets).load(stored)
        before = stored["status"]
        moment = meta.time_text(self.write.now)
        after = {
            **before,
            "disruptionsAllowed": before["disruptionsAllowed"] - 1,
            "disruptedPods": {**(before.get("disruptedPods") or {}), self.write.name: moment},
        }
        if not after["disruptionsAllowed"]:
            after["conditions"] = _exhausted(before, moment)
        subject.content["status"] = after
        return subject


def _is_free(pod: _Document) -> bool:
    """Whether a pod may go without asking."""
    return "deletionTimestamp" in pod["metadata"] or (pod.get("status") or {}).get("phase") in _FREE_PHASES


def _may_go_unhealthy(pod: _Document, budget: _Document) -> bool:
    """Whether a pod does not count because it is not ready."""
    ready = _condition((pod.get("status") or {}).get("conditions") or (), "Ready")
    if ready is not None and ready.get("status") == "True":
        return False
    counts = budget["status"]
    is_policy = budget["spec"].get("unhealthyPodEvictionPolicy") == poddisruptionbudget.ALWAYS_ALLOW
    return is_policy or bool(counts["currentHealthy"] >= counts["desiredHealthy"] > 0)


def _check(budget: _Document) -> None:
    """Refuses an eviction that a budget does not allow."""
    name, current = budget["metadata"]["name"], budget["status"]
    if current.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        cause = _cause(f"The disruption budget {name} is still being processed by the server.")
        raise status.too_many_requests(_VIOLATES, retry_after=_RETRY_SECONDS, causes=[cause])
    if len(current.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        document = refusal.forbidden(_TOO_MANY, group="policy", plural="poddisruptionbudget", name=name)
        reason = "too many pending evictions not confirmed by PDB controller"
        cause = _cause(f"The disruption budget {name} does not allow evicting pods currently: {reason}")
        raise status.StatusError({**document, "details": {**document["details"], "causes": [cause]}})
    if not current["disruptionsAllowed"]:
        raise status.too_many_requests(_VIOLATES, causes=[_cause(f"The disruption budget {name} {_why(current)}")])


def _why(current: _Document) -> str:
    desired, healthy = current["desiredHealthy"], current["currentHealthy"]
    condition = _condition(current.get("conditions") or (), poddisruptionbudget.DISRUPTION_ALLOWED) or {}
    reason, message = condition.get("reason", ""), condition.get("message", "")
    is_explained = condition.get("status") == "False" and bool(message)
    # The counts mean nothing where the controller has failed.
    if is_explained and reason == poddisruptionbudget.SYNC_FAILED:
        return f"does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= desired:
        return f"needs {desired} healthy pods and has {healthy} currently"
    if is_explained:
        return f"does not allow evicting pods currently ({reason}): {message}"
    return "does not allow evicting pods currently"


def _exhausted(before: _Document, moment: str) -> list[_Document]:
    """The conditions of a budget of which nothing is left."""
    conditions: Sequence[_Document] = before.get("conditions") or ()
    old = _condition(conditions, poddisruptionbudget.DISRUPTION_ALLOWED)
    is_same = old is not None and old.get("status") == "False"
    fresh = {
        "type": poddisruptionbudget.DISRUPTION_ALLOWED,
        "status": "False",
        "observedGeneration": before["observedGeneration"],
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and is_same else moment,
        "reason": poddisruptionbudget.INSUFFICIENT_PODS,
        "message": "",
    }
    return [*conditions, fresh] if old is None else [fresh if each is old else each for each in conditions]


def _condition(conditions: Sequence[_Document], kind: str) -> _Document | None:
    return next((each for each in conditions if each.get("type") == kind), None)


def _cause(message: str) -> dict[str, str]:
    return {"reason": "DisruptionBudget", "message": message}
