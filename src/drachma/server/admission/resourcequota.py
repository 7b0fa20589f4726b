"""ResourceQuota: a write that uses something of its namespace is refused where there is no room for it.

What it uses is charged in the commit that stores the object, so that no two writes share what is left, and nothing
stays charged for what was not stored. What is given back, by deletions first of all, its controller counts.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

from drachma.accounting import extendedresources
from drachma.accounting.quota import charging, evaluator, evaluators
from drachma.api import codec, deviceclass, meta, pod, resourceclaim
from drachma.server.admission import quotacharge
from drachma.server.admission.proposal import Get, Proposal
from drachma.server.reads.reader import Reader
from drachma.store import record

QUOTAS: Final = "resourcequotas"
CHANGING: Final = frozenset({"persistentvolumeclaims", "pods", "services", "resource.k8s.io/resourceclaims"})
"""Kinds whose updates can use more than before; of all others only new objects count."""

_CLASSES: Final = "resource.k8s.io/deviceclasses"
_CLAIMS: Final = "resource.k8s.io/resourceclaims"
_PODS: Final = "pods"

_T = TypeVar("_T", bound=meta.Object)


class ResourceQuota:
    """Holds writes to the quotas of their namespace."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._extended = extendedresources.ExtendedResources()
        self._listed = 0

    def charge(self, proposal: Proposal) -> None:
        """Charges what an object uses, or refuses it."""
        write = proposal.write
        # Most clusters have no quotas, and most namespaces of the others neither.
        if not self._store.changed(QUOTAS) or not write.namespace:
            return
        quotas = list(self._quotas(write.namespace, proposal.get))
        is_counted = bool(quotas) and not write.resource.traits.is_uncounted
        judge = evaluators.of(write.resource.group, write.resource.plural) if is_counted else None
        if judge is None or write.subresource not in judge.subresources:
            return
        change = evaluator.Change(
            _read(proposal.document(), judge.model),
            None if proposal.stored is None else _read(proposal.stored.value, judge.model),
            write.subresource,
        )
        read = {quota.key.name: quotacharge.read(quota.value) for quota in quotas}
        facts = _Facts(self._store, self._classes(), write.now)
        charges = charging.charges(judge, change, read.values(), facts=facts)
        if isinstance(charges, charging.Refusal):
            raise proposal.forbidden(charges.message)
        proposal.charges = tuple(
            quotacharge.QuotaCharge(
                key=quota.key,
                uid=quota.uid,
                amounts=charges[quota.key.name],
                spec=quota.value.get("spec") or {},
                hard=quota.value["status"]["hard"],
                now=write.now,
                is_owed=charging.is_owed(write.subresource),
            )
            for quota in quotas
            if quota.key.name in charges
        )

    def _quotas(self, namespace: str, get: Get) -> Iterator[record.Record]:
        for each in self._store.list(QUOTAS, namespace).records:
            # What the same commit has charged already counts.
            quota = get(each.key)
            if quota is not None:
                yield quota

    def _classes(self) -> extendedresources.ExtendedResources:
        if self._listed < self._store.changed(_CLASSES):
            self._listed = self._store.revision
            classes = (_read(each.value, deviceclass.DeviceClass) for each in self._store.list(_CLASSES).records)
            self._extended = extendedresources.ExtendedResources(classes)
        return self._extended


class _Facts:
    """What is stored now."""

    def __init__(self, store: Reader, extended: extendedresources.ExtendedResources, now: datetime) -> None:
        self.now: Final = now
        self.extended: Final = extended
        self._store = store

    def pod(self, namespace: str, name: str) -> pod.Pod | None:
        stored = self._store.get(record.Key(_PODS, namespace, name))
        return None if stored is None else _read(stored.value, pod.Pod)

    def claims(self, namespace: str) -> Iterable[resourceclaim.ResourceClaim]:
        for each in self._store.list(_CLAIMS, namespace).records:
            yield _read(each.value, resourceclaim.ResourceClaim)


def _read(document: Any, model: type[_T]) -> _T:
    return codec.view(document, model)
