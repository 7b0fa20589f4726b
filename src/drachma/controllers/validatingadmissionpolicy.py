"""The controller of validating admission policies: type-checks each generation once, and writes the warnings to its
status.
"""

import contextlib
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
        policies = surroundings.informers.of(Policy, with_documents=True)
        self._client: Final = surroundings.client
        self._policies: Final = policies.cache
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        policies.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, policy: Policy) -> None:
        if policy.status.observed_generation < policy.metadata.generation:
            self._queue.add(cache.key_of(policy))

    async def _reconcile(self, key: cache.Key) -> controller.After | None:
        entry = self._policies.entry(key.name)
        if entry is None or entry.object.status.observed_generation >= entry.object.metadata.generation:
            return None
        policy = entry.object
        warnings = await self._check(entry.document()["spec"])
        status = {
            "observedGeneration": int(policy.metadata.generation),
            "typeChecking": {"expressionWarnings": warnings or None},
        }
        patch = patches.merge({"status": status}, patches.same(policy))
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.patch(Policy, key.name, patch=patch, subresource="status")
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
        param_kind = spec.get("paramKind") or {}
        group, _, version = param_kind.get("apiVersion", "").rpartition("/")
        params = (
            await self._type(typechecking.KindName(group, version, param_kind.get("kind", ""))) if param_kind else None
        )
        return typechecking.warnings(spec, sorted(checked, key=lambda each: each[0]), params)

    async def _type(self, name: typechecking.KindName) -> typechecking.CheckedType | None:
        document = await self._client.openapi(name.group, name.version)
        return None if document is None else typechecking.declared(document, name)
