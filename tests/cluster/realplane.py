"""A real control plane as recorded scenarios need it: time passes by waiting, and objects are removed afterwards."""

import asyncio
import datetime as dt
import time
from typing import Any

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.client import Client, http, patches, target
from tests import patience

_LONGEST_SECONDS = 60.0
_POLL_SECONDS = 0.25
_CLAIM_SECONDS = 10.0
_NAMESPACED = (
    "Deployment",
    "Job",
    "ReplicaSet",
    "Pod",
    "PodTemplate",
    "PodGroup",
    "CompositePodGroup",
    "ResourceClaim",
    "ResourceClaimTemplate",
)
_GLOBAL = ("ResourceSlice", "DeviceTaintRule", "DeviceClass", "Node")


class RealPlane:
    """See ``scenariorun.Plane``."""

    def __init__(self, client: http.HttpClient) -> None:
        self._http = client
        self._resources: dict[str, target.Target[meta.Object]] = {}

    @property
    def client(self) -> Client:
        return self._http

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    async def settle(self) -> None:
        """Do nothing: another process cannot be asked whether it is at rest."""

    async def advance(self, seconds: float) -> None:
        """Wait until nothing has changed for so long, or a minute at most."""
        begun = quiet_since = time.monotonic()
        last: Any = None
        while time.monotonic() - quiet_since < seconds and time.monotonic() - begun < _LONGEST_SECONDS:
            current = await self._versions()
            if current != last:
                last, quiet_since = current, time.monotonic()
            await asyncio.sleep(min(_POLL_SECONDS, seconds))

    async def follow(self, created: Any) -> None:
        """Wait until the claims of a new pod are generated, or for as long as a busy machine needs.

        Upstream's claim controller has several workers. Of two pods that are created together either may get its claims
        first, and is then scheduled first, also by upstream's scheduler: without waiting it gives the other answer to
        ``podgroup-claims/claim-per-group`` in one of six runs.
        """
        entries = created["spec"].get("resourceClaims") or ()
        names = {each["name"] for each in entries if "resourceClaimTemplateName" in each}
        end = time.monotonic() + _CLAIM_SECONDS
        while names and time.monotonic() < end:
            metadata = created["metadata"]
            current = await self._http.get(pod.Pod, metadata["name"], namespace=metadata["namespace"])
            if names <= {each.name for each in current.status.resource_claim_statuses}:
                return
            await asyncio.sleep(0.02)

    async def clear(self) -> None:
        """Delete all objects that scenarios create, and wait until they are gone."""
        for kind in (*_NAMESPACED, *_GLOBAL, "PriorityClass", "ResourceQuota"):
            for each in await self._all(kind):
                await self._delete(kind, each)

        async def rest() -> list[str]:
            kinds = (*_NAMESPACED, *_GLOBAL)
            left = [(kind, each) for kind in kinds for each in await self._all(kind)]
            for kind, each in left:
                await self._delete(kind, each)
            return [f"{kind} {each.metadata.name}" for kind, each in left]

        await patience.until_async(rest, lambda left: not left, what="the cluster is empty")

    async def _delete(self, kind: str, each: meta.Object) -> None:
        if each.metadata.name.startswith("system-"):
            return
        # As a claim and not as metadata, because only so a patch keeps opaque parameters.
        served: target.Of[Any] = self._resources[kind]
        if kind == "ResourceClaim":
            served = resourceclaim.ResourceClaim
        name, namespace = each.metadata.name, each.metadata.namespace
        try:
            if each.metadata.finalizers:
                # A component that would remove them may have been stopped by its test.
                patch = patches.merge({"metadata": {"finalizers": None}})
                await self._http.patch(served, name, namespace=namespace, patch=patch)
            await self._http.delete(served, name, namespace=namespace, grace_period_seconds=0, propagation="Background")
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            pass

    async def _versions(self) -> list[tuple[str, str]]:
        kinds = ("Pod", "ResourceClaim", "PodGroup", "Job", "ReplicaSet")
        return [(each.metadata.uid, each.metadata.resource_version) for kind in kinds for each in await self._all(kind)]

    async def _all(self, kind: str) -> list[meta.Object]:
        if not self._resources:
            self._resources = {each.kind: each for each in reversed(await self._http.resources())}
        served = self._resources.get(kind)
        return [] if served is None else list((await self._http.list(served)).items)
