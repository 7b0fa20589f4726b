"""Claims of the pods of a node as the workers of the pods use them, and the prepared devices of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.accounting import resourcenames
from drachma.api import gates as feature
from drachma.api.pod import Container, Pod
from drachma.claims import podclaims
from drachma.node.claims import devicehealth
from drachma.node.claims.preparation import Preparation
from drachma.node.claims.preparedclaims import Key, PreparedClaim, PreparedClaims


class NodeClaims:
    """Claims of one node."""

    def __init__(self, preparation: Preparation, health: devicehealth.HealthReports, *, gates: feature.Gates) -> None:
        self._preparation: Final = preparation
        self._health: Final = health
        self._gates: Final = gates

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of a pod. Raises NodeError to be tried again."""
        await self._preparation.prepare(pod)

    async def unprepare(self, pod: Pod) -> None:
        """Unprepare the claims of a pod. Raises NodeError to be tried again."""
        await self._preparation.unprepare(pod)

    def cdi_devices(self, pod: Pod, container: Container) -> Sequence[str]:
        """Return the CDI ids of a container's devices. Raises NodeError if a claim is not prepared."""
        return cdi_devices(self._preparation.claims, pod, container)

    def device_health(self, pod: Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return ``allocatedResourcesStatus`` of each container."""
        if not pod.spec.resource_claims or not self._gates.on(feature.Gate.RESOURCE_HEALTH_STATUS):
            return {}
        has_messages = self._gates.on(feature.Gate.RESOURCE_HEALTH_STATUS_MESSAGE)
        return {
            each.name: devicehealth.statuses(
                self._preparation.claims, self._health, pod, each, has_messages=has_messages
            )
            for each in pod.spec.containers
        }


class NoClaims:
    """Claims of a node without DRA: pods run without the devices of their claims, as KEP-4381 says of a rollback."""

    async def prepare(self, pod: Pod) -> None:
        pass

    async def unprepare(self, pod: Pod) -> None:
        pass

    def cdi_devices(self, pod: Pod, container: Container) -> Sequence[str]:
        return ()

    def device_health(self, pod: Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {}


def cdi_devices(claims: PreparedClaims, pod: Pod, container: Container) -> list[str]:
    """Return the CDI ids for a container, in the order of the pod's claims.

    A device appears several times if the container names its claim several times.

    Raises:
        errors.NodeError: a claim has no record.
    """
    ids: list[str] = []
    namespace = pod.metadata.namespace
    for name, requests in _container_requests(pod, container):
        record = claims.get(Key(namespace, name))
        if record is None:
            raise errors.NodeError(
                f"internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}"
            )
        for request in requests:
            ids += record.cdi_devices(request)
    return ids


def container_claims(claims: PreparedClaims, pod: Pod, container: Container) -> list[PreparedClaim]:
    """Return the records of the claims of a container.

    Raises:
        errors.NodeError: a claim has no record.
    """
    records = []
    for name, _ in _container_requests(pod, container):
        record = claims.get(Key(pod.metadata.namespace, name))
        if record is None:
            raise errors.NodeError(f"unable to get information for ResourceClaim {name}")
        records.append(record)
    return records


def _container_requests(pod: Pod, container: Container) -> Iterator[tuple[str, list[str]]]:
    """Yield the claims that a container uses, each with the requests that it names; an empty name means all of them."""
    for entry, reference in podclaims.named(pod):
        requests = [each.request for each in container.resources.claims if each.name == entry.name]
        if requests:
            yield reference.name, requests
    extended = pod.status.extended_resource_claim_status
    if extended is None:
        return
    resources = {
        name
        for name, amount in container.resources.requests.items()
        if amount.nanos and resourcenames.may_be_devices(name)
    }
    mappings = [each for each in extended.request_mappings if each.container_name == container.name]
    requests = [each.request_name for each in mappings if each.resource_name in resources]
    if requests:
        yield extended.resource_claim_name, requests
