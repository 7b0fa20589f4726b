"""Evictions: pods are deleted with a condition that says why, if their disruption budgets allow it.

An eviction takes one disruption off the budget of its pod. The charge is committed together with the condition. It is
refused in upstream's words if the budget allows no disruption, if the controller has not processed the budget yet, or
if the pod has several budgets. Pods that have ended, have not started or are being deleted need no budget.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma.api import meta, poddisruptionbudget, struct
from drachma.claims import conditions
from drachma.server import status
from drachma.server.admission import noderestriction
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import deletion, intent, podcalls, update
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation
from drachma.server.surface import resources
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record
from drachma.validation import refusal, workload

_OLD_VERSIONS: Final = ("policy/v1beta1",)

_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class _Eviction(struct.Struct, frozen=True, kw_only=True):
    metadata: meta.ObjectMeta = meta.ABSENT_META
    delete_options: dict[str, Any] | None = None


async def evict(services: Services, call: Call) -> Answer:
    """Charge the budget and set the condition in one commit, then delete the pod: watchers see both versions.

    With a resourceVersion precondition the condition is left out, because setting it would make another version.
    """
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    eviction = podcalls.read(call, _Eviction, write_options, media_type=media_type, also=_OLD_VERSIONS)
    if eviction.metadata.name != call.target.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    delete_options = options.read_delete_options({}, eviction.delete_options or {})
    if write_options.is_dry_run and not delete_options.is_dry_run:
        delete_options = msgspec.structs.replace(delete_options, is_dry_run=True)
    removal = deletion.Deletion(services, services.write(call), delete_options)
    charge = BudgetCharge(services, call, removal)
    if delete_options.is_dry_run or delete_options.resource_version is not None:
        await services.committer.commit_all((charge, removal))
    else:
        await services.committer.commit_all((charge, _Mark(removal)))
        await services.committer.commit(removal)
    return Answer(201, Verbatim(status.success(201)))


class _Mark(intent.UniqueIntent):
    """Intent to set the eviction condition of a pod."""

    def __init__(self, removal: deletion.Deletion) -> None:
        self.write: Final = removal.write
        self.is_dry_run: Final = removal.is_dry_run
        self._removal = removal

    def decide(self, get: intent.Get) -> intent.Replace:
        existing = self._removal.removal(get).stored
        current = dict(existing.value.get("status") or {})
        current["conditions"] = podcalls.set_condition(current.get("conditions") or [], _CONDITION, write=self.write)
        return intent.Replace(existing, {**existing.value, "status": current})


_VERSION: Final = "v1"
_MANAGER: Final = "kube-apiserver"
"""Field manager of the changes that an eviction makes to a budget, as in upstream."""

_FREE_PHASES: Final = frozenset({"Succeeded", "Failed", "Pending"})
_MOST_DISRUPTED: Final = 2000
"""Limit of evicted pods that the controller has not confirmed yet."""

_RETRY_SECONDS: Final = 10
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TOO_MANY: Final = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"

_Document = Mapping[str, Any]


class BudgetCharge(intent.UniqueIntent):
    """Intent to charge an eviction to the disruption budget of its pod."""

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
        if self._budgets is None or _needs_no_budget(pod.value):
            return intent.Leave(pod)
        budgets = tuple(self._find(pod.value, self._budgets))
        if len(budgets) > 1:
            raise status.unclassified(_SEVERAL)
        if not budgets or _needs_no_charge(pod.value, budgets[0].value):
            return intent.Leave(pod)
        _check(budgets[0].value)
        charged = self._write(budgets[0].key.name, self._budgets)
        write_options = options.WriteOptions(is_dry_run=self.is_dry_run)
        return update.Update(self._services, self._change, charged, write_options=write_options).decide(get)

    def _find(self, pod: _Document, budgets: resources.Resource) -> Iterator[record.Record]:
        labels = pod["metadata"].get("labels") or {}
        for each in self._services.store.list(budgets.key, self.write.namespace).records:
            selector = workload.compile_selector((each.value.get("spec") or {}).get("selector"))
            if selector is not None and selector.matches(labels):
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

    def _change(self, budget: _Document | None) -> Subject:
        assert budget is not None, "the budget has just been listed"
        assert self._budgets is not None, "budgets are served, or none would have been found"
        # Other evictions may have exhausted the budget since it was listed.
        _check(budget)
        subject = self._surface.strategy(self._budgets).load(budget)
        old_status = budget["status"]
        moment = meta.time_text(self.write.now)
        new_status = {
            **old_status,
            "disruptionsAllowed": old_status["disruptionsAllowed"] - 1,
            "disruptedPods": {**(old_status.get("disruptedPods") or {}), self.write.name: moment},
        }
        if not new_status["disruptionsAllowed"]:
            new_status["conditions"] = _exhausted_conditions(old_status, moment)
        subject.content["status"] = new_status
        return subject


def _needs_no_budget(pod: _Document) -> bool:
    """Return True if a pod can be evicted without a budget."""
    return "deletionTimestamp" in pod["metadata"] or (pod.get("status") or {}).get("phase") in _FREE_PHASES


def _needs_no_charge(pod: _Document, budget: _Document) -> bool:
    """Return True if a pod that is not ready can be evicted without a charge."""
    ready = conditions.find_document((pod.get("status") or {}).get("conditions") or (), "Ready")
    if ready is not None and ready.get("status") == "True":
        return False
    counts = budget["status"]
    is_policy = budget["spec"].get("unhealthyPodEvictionPolicy") == poddisruptionbudget.ALWAYS_ALLOW
    return is_policy or bool(counts["currentHealthy"] >= counts["desiredHealthy"] > 0)


def _check(budget: _Document) -> None:
    """Raise a StatusError if a budget does not allow an eviction."""
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
        raise status.too_many_requests(
            _VIOLATES, causes=[_cause(f"The disruption budget {name} {_explain_refusal(current)}")]
        )


def _explain_refusal(current: _Document) -> str:
    desired, healthy = current["desiredHealthy"], current["currentHealthy"]
    condition = conditions.find_document(current.get("conditions") or (), poddisruptionbudget.DISRUPTION_ALLOWED) or {}
    reason, message = condition.get("reason", ""), condition.get("message", "")
    is_explained = condition.get("status") == "False" and bool(message)
    # The counts mean nothing if the controller has failed.
    if is_explained and reason == poddisruptionbudget.SYNC_FAILED:
        return f"does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= desired:
        return f"needs {desired} healthy pods and has {healthy} currently"
    if is_explained:
        return f"does not allow evicting pods currently ({reason}): {message}"
    return "does not allow evicting pods currently"


def _exhausted_conditions(before: _Document, moment: str) -> list[_Document]:
    """Return the conditions of a budget that allows no more disruptions."""
    condition = {
        "type": poddisruptionbudget.DISRUPTION_ALLOWED,
        "status": "False",
        "observedGeneration": before["observedGeneration"],
        "lastTransitionTime": moment,
        "reason": poddisruptionbudget.INSUFFICIENT_PODS,
        "message": "",
    }
    return conditions.put_document(before.get("conditions") or (), condition)


def _cause(message: str) -> dict[str, str]:
    return {"reason": "DisruptionBudget", "message": message}
