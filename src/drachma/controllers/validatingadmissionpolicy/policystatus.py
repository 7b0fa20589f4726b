"""The controller: checks each generation of a policy once, and says in its status what it found."""

from typing import Any, Final

from drachma import errors
from drachma.api import validatingadmissionpolicy
from drachma.client import patches
from drachma.runtime import Surroundings, cache, controller, informer, workqueue
from drachma.validation.admissionregistration import typechecking

WORKERS: Final = 5

Policy = validatingadmissionpolicy.ValidatingAdmissionPolicy


class PolicyStatusController:
    """Type-checks validating admission policies."""

    name: Final = "validatingadmissionpolicy-status"

    def __init__(self, surroundings: Surroundings) -> None:
        policies = surroundings.informers.of(Policy)
        self._client: Final = surroundings.client
        self._policies: Final = policies.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        policies.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _see(self, policy: Policy) -> None:
        if policy.status.observed_generation < policy.metadata.generation:
            self._queue.add(cache.key_of(policy))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        policy = self._policies.get(key.name)
        if policy is None or policy.status.observed_generation >= policy.metadata.generation:
            return None
        try:
            document = await self._client.get_document(Policy, key.name)
            warnings = await self._check(document["spec"])
            status = {
                "observedGeneration": document["metadata"].get("generation", 0),
                "typeChecking": {"expressionWarnings": warnings or None},
            }
            await self._client.patch(Policy, key.name, patch=patches.merge({"status": status}), subresource="status")
        except errors.ObjectNotFoundError:
            pass
        return None

    async def _check(self, spec: dict[str, Any]) -> list[dict[str, str]]:
        kinds = {(each.group, each.plural): each.kind for each in await self._client.resources()}
        checked: list[tuple[typechecking.KindName, typechecking.CheckedType]] = []
        for group, version, plural in typechecking.resources(spec):
            kind = kinds.get((group, plural))
            name = typechecking.KindName(group, version, kind or "")
            type_ = await self._type(name) if kind else None
            if type_ is not None and name not in dict(checked):
                checked.append((name, type_))
            if len(checked) == typechecking.MOST:
                break
        of = spec.get("paramKind") or {}
        group, _, version = of.get("apiVersion", "").rpartition("/")
        params = await self._type(typechecking.KindName(group, version, of.get("kind", ""))) if of else None
        return typechecking.warnings(spec, sorted(checked, key=lambda each: each[0]), params)

    async def _type(self, name: typechecking.KindName) -> typechecking.CheckedType | None:
        document = await self._client.openapi(name.group, name.version)
        return None if document is None else typechecking.declared(document, name)
