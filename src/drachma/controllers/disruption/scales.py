"""How many pods there should be: the scale of what controls them, each controller counted once.

The budget is not told from the pods that exist, because those that are missing are what it is about.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import deployment, meta, pod, replicaset, replicationcontroller, statefulset
from drachma.claims import ownership
from drachma.client import Client
from drachma.runtime import Surroundings
from drachma.values import quotation

_WORKLOAD_GROUPS: Final = frozenset({"apps", "extensions"})


class Expectation(NamedTuple):
    """How many pods there should be, and the pods that nothing controls and that are not counted."""

    total: int
    unmanaged: tuple[str, ...]


class _Scale(NamedTuple):
    uid: str
    replicas: int


_Replicated = deployment.Deployment | statefulset.StatefulSet | replicationcontroller.ReplicationController


class Scales:
    """What is known of the things that control pods."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final[Client] = surroundings.client
        self._replica_sets: Final = surroundings.informers.of(replicaset.ReplicaSet).cache
        self._deployments: Final = surroundings.informers.of(deployment.Deployment).cache
        self._controllers: Final = surroundings.informers.of(replicationcontroller.ReplicationController).cache
        self._stateful_sets: Final = surroundings.informers.of(statefulset.StatefulSet).cache

    async def expected(self, pods: Iterable[pod.Pod]) -> Expectation:
        """How many pods there should be of what controls these.

        Raises:
            errors.ReconcileError: something controls a pod, and nobody knows how many it wants.
        """
        scales: dict[str, int] = {}
        unmanaged = []
        for each in pods:
            owner = ownership.controller_of(each)
            if owner is None:
                unmanaged.append(each.metadata.name)
            elif owner.uid not in scales:
                scale = await self._scale(owner, each.metadata.namespace)
                if scale is None:
                    raise errors.ReconcileError(f"found no controllers for pod {quotation.quote(each.metadata.name)}")
                scales[scale.uid] = scale.replicas
        return Expectation(sum(scales.values()), tuple(unmanaged))

    async def _scale(self, owner: meta.OwnerReference, namespace: str) -> _Scale | None:
        """The scale of an owner; None where it is gone, or another of its name has taken its place."""
        if _is_workload(owner, "ReplicaSet"):
            return self._of_replica_set(owner, namespace)
        if _is_workload(owner, "Deployment"):
            return self._of(self._deployments.get(owner.name, namespace=namespace), owner)
        if _is_workload(owner, "StatefulSet"):
            return self._of(self._stateful_sets.get(owner.name, namespace=namespace), owner)
        if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
            return self._of(self._controllers.get(owner.name, namespace=namespace), owner)
        raise errors.ReconcileError(await self._problem(owner))

    def _of_replica_set(self, owner: meta.OwnerReference, namespace: str) -> _Scale | None:
        own = self._replica_sets.get(owner.name, namespace=namespace)
        if own is None or own.metadata.uid != owner.uid:
            return None
        above = ownership.controller_of(own)
        if above is not None and _is_workload(above, "Deployment"):
            # While a deployment replaces pods it has several replica sets, which together are one.
            scale = self._of(self._deployments.get(above.name, namespace=namespace), above)
            if scale is not None:
                return scale
        return _Scale(own.metadata.uid, own.spec.replicas or 0)

    @staticmethod
    def _of(own: _Replicated | None, owner: meta.OwnerReference) -> _Scale | None:
        if own is None or own.metadata.uid != owner.uid:
            return None
        return _Scale(own.metadata.uid, own.spec.replicas or 0)

    async def _problem(self, owner: meta.OwnerReference) -> str:
        """Why nobody knows how many pods an owner wants."""
        group, _, _ = owner.api_version.rpartition("/")
        for each in await self._client.resources():
            if (each.group, each.kind) == (group, owner.kind):
                return f"{each.qualified} does not implement the scale subresource"
        kind, version = quotation.quote(owner.kind), quotation.quote(owner.api_version)
        return f"no matches for kind {kind} in version {version}"


def _is_workload(owner: meta.OwnerReference, kind: str) -> bool:
    return owner.kind == kind and owner.api_version.rpartition("/")[0] in _WORKLOAD_GROUPS
