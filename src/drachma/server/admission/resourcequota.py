"""ResourceQuota: a write is refused if it exceeds a quota of its namespace.

The usage is charged in the commit that stores the object. So no two writes use the same remainder, and nothing is
charged for a write that failed. The quota controller counts usage that ends.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

from drachma.accounting import extendedresources
from drachma.accounting.quota import charging, evaluator, evaluators
from drachma.api import codec, deviceclass, gates, meta, pod, resourceclaim
from drachma.server.admission import quotacharge
from drachma.server.admission.proposal import Get, Proposal
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.store import record

QUOTAS: Final = "resourcequotas"
CHANGING: Final = frozenset({"persistentvolumeclaims", "pods", "services", "resource.k8s.io/resourceclaims"})
"""Kinds whose updates can increase usage; of all others only new objects are charged."""

_CLASSES: Final = "resource.k8s.io/deviceclasses"
_CLAIMS: Final = "resource.k8s.io/resourceclaims"
_PODS: Final = "pods"

_T = TypeVar("_T", bound=meta.Object)


class ResourceQuota:
    """Applies the quotas of a namespace to writes."""

    def __init__(self, store: Reader, enabled: gates.Gates) -> None:
        self._gates = enabled
        self._store = store
        self._extended = extendedresources.ExtendedResources()
        self._listed = 0

    def concerns(self, write: Write) -> bool:
        """Return True if the namespace of a write may have quotas."""
        return bool(
            write.namespace and self._store.changed(QUOTAS) and self._store.list(QUOTAS, write.namespace).records
        )

    def charge(self, proposal: Proposal) -> None:
        """Charge the usage of an object, or refuse it."""
        write = proposal.write
        # Most clusters and namespaces have no quotas.
        if not self._store.changed(QUOTAS) or not write.namespace:
            return
        quotas = list(self._quotas(write.namespace, proposal.get))
        is_counted = bool(quotas) and not write.resource.traits.is_uncounted
        judge = evaluators.of(write.resource.group, write.resource.plural, self._gates) if is_counted else None
        if judge is None or write.subresource not in judge.subresources:
            return
        change = evaluator.Change(
            _read(proposal.document(), judge.model),
            None if proposal.stored is None else _read(proposal.stored.value, judge.model),
            write.subresource,
        )
        quotas_by_name = {quota.key.name: quotacharge.read(quota.value) for quota in quotas}
        facts = _Facts(self._store, self._classes(), write.now)
        charges = charging.charges(judge, change, quotas_by_name.values(), facts=facts)
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
                is_owed=write.subresource in judge.owed,
            )
            for quota in quotas
            if quota.key.name in charges
        )

    def _quotas(self, namespace: str, get: Get) -> Iterator[record.Record]:
        for each in self._store.list(QUOTAS, namespace).records:
            # Include earlier charges of the same commit.
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
    """Stored objects that charges depend on."""

    def __init__(self, store: Reader, extended: extendedresources.ExtendedResources, now: datetime) -> None:
        self.now: Final = now
        self.extended: Final = extended
        self._store = store

    def pod(self, namespace: str, name: str) -> pod.Pod | None:
        existing = self._store.get(record.Key(_PODS, namespace, name))
        return None if existing is None else _read(existing.value, pod.Pod)

    def claims(self, namespace: str) -> Iterable[resourceclaim.ResourceClaim]:
        for each in self._store.list(_CLAIMS, namespace).records:
            yield _read(each.value, resourceclaim.ResourceClaim)


def _read(document: Any, model: type[_T]) -> _T:
    return codec.view(document, model)
