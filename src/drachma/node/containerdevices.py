"""Which of the prepared devices a container gets."""

from __future__ import annotations

from collections.abc import Iterator

from drachma import errors
from drachma.accounting import resourcenames
from drachma.api import pod
from drachma.claims import podclaims
from drachma.node.preparedclaims import Key, PreparedClaim, PreparedClaims


def cdi_devices(claims: PreparedClaims, of: pod.Pod, container: pod.Container) -> list[str]:
    """The CDI ids for a container, in the order of the pod's claims; a NodeError where a claim is not known here.

    A device may come up several times, where the container names its claim several times.
    """
    ids: list[str] = []
    namespace = of.metadata.namespace
    for name, requests in _claims_of(of, container):
        record = claims.get(Key(namespace, name))
        if record is None:
            raise errors.NodeError(
                f"internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}"
            )
        for request in requests:
            ids += record.cdi_devices(request)
    return ids


def container_claims(claims: PreparedClaims, of: pod.Pod, container: pod.Container) -> list[PreparedClaim]:
    """What is known of the claims of a container; a NodeError where one is not known here."""
    records = []
    for name, _ in _claims_of(of, container):
        record = claims.get(Key(of.metadata.namespace, name))
        if record is None:
            raise errors.NodeError(f"unable to get information for ResourceClaim {name}")
        records.append(record)
    return records


def _claims_of(of: pod.Pod, container: pod.Container) -> Iterator[tuple[str, list[str]]]:
    """The claims that a container uses, each with the requests that it names; an empty one means all of the claim."""
    for entry, reference in podclaims.named(of):
        requests = [each.request for each in container.resources.claims if each.name == entry.name]
        if requests:
            yield reference.name, requests
    extended = of.status.extended_resource_claim_status
    if extended is None:
        return
    asked = {
        name
        for name, amount in container.resources.requests.items()
        if amount.nanos and resourcenames.may_be_devices(name)
    }
    mappings = [each for each in extended.request_mappings if each.container_name == container.name]
    requests = [each.request_name for each in mappings if each.resource_name in asked]
    if requests:
        yield extended.resource_claim_name, requests
