"""Eviction: a pod goes, with a condition that says why, if its disruption budget allows it."""

from typing import Any, Final

import msgspec

from drachma.api import meta, struct
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import budgetcharge, deletion, intent, podcalls
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation

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
    """Charges the budget and sets the condition in one commit, then deletes the pod: watchers see both versions.

    A deletion that names the version it means comes without the condition, which would make another version.
    """
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "CreateOptions")
    eviction = podcalls.read(call, _Eviction, wanted, media_type=media_type, also=_OLD_VERSIONS)
    if eviction.metadata.name != call.target.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    how = options.for_delete({}, eviction.delete_options or {})
    if wanted.is_dry_run and not how.is_dry_run:
        how = msgspec.structs.replace(how, is_dry_run=True)
    removal = deletion.Deletion(services, services.write(call), how)
    charge = budgetcharge.BudgetCharge(services, call, removal)
    if how.is_dry_run or how.resource_version is not None:
        await services.committer.commit_all((charge, removal))
    else:
        await services.committer.commit_all((charge, _Mark(removal)))
        await services.committer.commit(removal)
    return Answer(201, Verbatim(status.success(201)))


class _Mark:
    """Says of a pod that it is evicted, if it can be."""

    def __init__(self, removal: deletion.Deletion) -> None:
        self.write: Final = removal.write
        self.is_dry_run: Final = removal.is_dry_run
        self._removal = removal

    def decide(self, get: intent.Get) -> intent.Replace:
        stored = self._removal.removal(get).stored
        current = dict(stored.value.get("status") or {})
        current["conditions"] = podcalls.with_condition(current.get("conditions") or [], _CONDITION, write=self.write)
        return intent.Replace(stored, {**stored.value, "status": current})
