"""Expected number of pods: the scale of their controllers, each counted once.

Existing pods are not counted, because a budget must count missing ones too.
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
    """Expected number of pods, and pods without a controller, which are not counted."""

    total: int
    unmanaged: tuple[str, ...]


class _Scale(NamedTuple):
    uid: str
    replicas: int


_Replicated = deployment.Deployment | statefulset.StatefulSet | replicationcontroller.ReplicationController


class Scales:
    """Scales of the controllers of pods."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final[Client] = surroundings.client
        self._replica_sets: Final = surroundings.informers.of(replicaset.ReplicaSet).cache
        self._deployments: Final = surroundings.informers.of(deployment.Deployment).cache
        self._controllers: Final = surroundings.informers.of(replicationcontroller.ReplicationController).cache
        self._stateful_sets: Final = surroundings.informers.of(statefulset.StatefulSet).cache

    async def expected(self, pods: Iterable[pod.Pod]) -> Expectation:
        """Return the expected number of pods of the controllers of these pods.

        Raises:
            errors.ReconcileError: the scale of a controller is unknown.
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
        """Return the scale of an owner, or None if it is gone or another object has its name."""
        if _is_workload(owner, "ReplicaSet"):
            return self._replica_set_scale(owner, namespace)
        if _is_workload(owner, "Deployment"):
            return self._of(self._deployments.get(owner.name, namespace=namespace), owner)
        if _is_workload(owner, "StatefulSet"):
            return self._of(self._stateful_sets.get(owner.name, namespace=namespace), owner)
        if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
            return self._of(self._controllers.get(owner.name, namespace=namespace), owner)
        raise errors.ReconcileError(await self._problem(owner))

    def _replica_set_scale(self, owner: meta.OwnerReference, namespace: str) -> _Scale | None:
        own = self._replica_sets.get(owner.name, namespace=namespace)
        if own is None or own.metadata.uid != owner.uid:
            return None
        above = ownership.controller_of(own)
        if above is not None and _is_workload(above, "Deployment"):
            # During a rollout a deployment has several replica sets, which count as one.
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
        """Return the reason for which the scale of an owner is unknown."""
        group, _, _ = owner.api_version.rpartition("/")
        for each in await self._client.resources():
            if (each.group, each.kind) == (group, owner.kind):
                return f"{each.qualified} does not implement the scale subresource"
        kind, version = quotation.quote(owner.kind), quotation.quote(owner.api_version)
        return f"no matches for kind {kind} in version {version}"


def _is_workload(owner: meta.OwnerReference, kind: str) -> bool:
    return owner.kind == kind and owner.api_version.rpartition("/")[0] in _WORKLOAD_GROUPS
