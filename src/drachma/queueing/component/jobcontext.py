"""What a job has around it, read as whole documents: its workloads, its owners, its namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.client import protocol, target
from drachma.queueing.component import resources
from drachma.queueing.component.caches import BY_OWNER, Caches
from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs import jobowners
from drachma.queueing.jobs.jobsettings import Surroundings
from drachma.queueing.jobs.jobworkload import WorkloadRecord
from drachma.runtime.cache import Key

_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
_FOLLOWED: Final = frozenset(
    {("apps/v1", "ReplicaSet"), *((each.api_version, each.kind) for each in frameworks.KINDS.values())}
)

Document = Mapping[str, Any]


class JobContext:
    """Reads from the API server what caches have only a view of."""

    def __init__(self, client: protocol.Client, caches: Caches) -> None:
        self._client: Final = client
        self._caches: Final = caches

    async def document(self, kind: target.Of[Any], key: Key) -> dict[str, Any] | None:
        """An object as it is; None where there is none."""
        try:
            return await self._client.get_document(kind, key.name, namespace=key.namespace)
        except errors.ObjectNotFoundError:
            return None

    async def workloads(self, owner: str, *, of: Document | None, namespace: str) -> list[WorkloadRecord]:
        """The workloads of an object, and the one that somebody made for it."""
        names = {each.metadata.name for each in self._caches.workloads.cache.by(BY_OWNER, owner)}
        metadata = of["metadata"] if of is not None else {}
        for field in ("labels", "annotations"):
            prebuilt = (metadata.get(field) or {}).get(_PREBUILT)
            if prebuilt:
                names.add(prebuilt)
        return await self.named(names, namespace)

    async def named(self, names: Iterable[str], namespace: str) -> list[WorkloadRecord]:
        """Workloads by name, those that exist."""
        records = []
        for name in sorted(names):
            document = await self.document(resources.WORKLOADS, Key(namespace, name))
            if document is not None:
                records.append(WorkloadRecord.of(document))
        return records

    async def around(self, namespace: str, of: Document | None, records: list[WorkloadRecord]) -> Surroundings:
        """All that a look at a job needs; the workloads of its owners are added to its own ``records``."""
        place = self._caches.places.get(namespace)
        owners = await self.owners(of, namespace) if of is not None else {}
        for owner in owners.values():
            value = f"{owner['kind']}/{namespace}/{owner['metadata']['name']}"
            known = {each.key for each in records}
            names = {each.metadata.name for each in self._caches.workloads.cache.by(BY_OWNER, value)}
            records += [each for each in await self.named(names, namespace) if each.key not in known]
        return Surroundings(
            namespace_labels=None if place is None else place.labels,
            workloads=records,
            owners=owners,
            flavors=self._caches.flavors_by_name,
            priorities=self._caches.priorities,
        )

    async def owners(self, of: Document, namespace: str) -> jobowners.Owners:
        """The owners of an object, as far up as they are followed."""
        owners: dict[tuple[str, str, str], Document] = {}
        while len(owners) <= jobowners.MOST:
            references = of["metadata"].get("ownerReferences") or ()
            owner = next((each for each in references if each.get("controller")), None)
            if owner is None or (owner["apiVersion"], owner["kind"]) not in _FOLLOWED:
                break
            place = (owner["apiVersion"], owner["kind"], owner["name"])
            document = await self._owner(owner, namespace)
            if document is None or place in owners:
                break
            owners[place] = of = document
        return owners

    async def _owner(self, reference: Document, namespace: str) -> Document | None:
        group, _, version = reference["apiVersion"].rpartition("/")
        plural = f"{reference['kind'].lower()}s"
        kind = target.metadata_of(group, version, plural=plural, kind=reference["kind"], namespaced=True)
        return await self.document(kind, Key(namespace, reference["name"]))
