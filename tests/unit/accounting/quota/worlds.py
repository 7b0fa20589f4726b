"""Objects from documents, and facts for evaluators."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from drachma.accounting import extendedresources
from drachma.accounting.quota import evaluator
from drachma.api import deviceclass, hooks, meta, pod, resourceclaim, resourcequota

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Facts:
    def __init__(
        self,
        *,
        classes: Mapping[str, str | None] | None = None,
        pods: Iterable[pod.Pod] = (),
        claims: Iterable[resourceclaim.ResourceClaim] = (),
    ) -> None:
        self.now = NOW
        documents = [
            {"metadata": {"name": name}, "spec": {"extendedResourceName": extended}}
            for name, extended in (classes or {}).items()
        ]
        self.extended = extendedresources.ExtendedResources(
            [msgspec.convert(each, deviceclass.DeviceClass) for each in documents]
        )
        self._pods = {each.metadata.name: each for each in pods}
        self._claims = tuple(claims)

    def pod(self, _namespace: str, name: str) -> pod.Pod | None:
        return self._pods.get(name)

    def claims(self, _namespace: str) -> Iterable[resourceclaim.ResourceClaim]:
        return self._claims


NOTHING = Facts()


def read(document: Mapping[str, Any], model: type[Any]) -> Any:
    return msgspec.convert(document, model, dec_hook=hooks.decode)


def quota(
    hard: Mapping[str, str], used: Mapping[str, str] | None = None, *, name: str = "q", **spec: Any
) -> resourcequota.ResourceQuota:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    document = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}, "status": status}
    made: resourcequota.ResourceQuota = read(document, resourcequota.ResourceQuota)
    return made


def used(judge: evaluator.Evaluator[Any], subject: meta.Object, facts: evaluator.Facts = NOTHING) -> dict[str, str]:
    """Return the use of an object as text, without zeros."""
    return {name: str(amount) for name, amount in judge.usage(subject, facts).items() if amount.sign}
