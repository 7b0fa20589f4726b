"""What tests do to a cluster through its API, and what they see of it. Test set-ups are made on top of it."""

from typing import Any, TypeVar

from msgspec import structs

from drachma import errors
from drachma.api import manifest, meta, pod, resourceclaim
from drachma.claims import conditions, wellknown
from drachma.client import Client, Selection, patches, target

ObjectT = TypeVar("ObjectT", bound=meta.Object)

Claim = resourceclaim.ResourceClaim


class ClusterView:
    """A cluster as a client has it. Names without a namespace are those of the namespace "default"."""

    def __init__(self, client: Client) -> None:
        self.client = client

    # Objects

    async def create_with_status(self, made: ObjectT) -> ObjectT:
        """Creates an object, with its status where it has one, which is written apart."""
        created = await self.client.create(made)
        status = getattr(made, "status", None)
        if status is not None and status != type(status)():
            return await self.patch_status(created, status)
        return created

    async def apply(self, *manifests: str) -> None:
        """Creates what manifests say, in the namespace "default" where they name none, with its status."""
        served = await self.client.resources()
        # Some kinds of the first alpha have the names of others.
        by_kind = {each.kind: each for each in reversed(served)}
        by_type = {(each.api_version(each.versions[0]), each.kind): each for each in served}
        for document in [each.content for text in manifests for each in manifest.read(text)]:
            kind = by_type.get((document["apiVersion"], document["kind"])) or by_kind[document["kind"]]
            kind = structs.replace(kind, versions=(document["apiVersion"].rpartition("/")[2],))
            metadata = {"namespace": "default", **document["metadata"]} if kind.namespaced else document["metadata"]
            made = await self.client.create_document(kind, {**document, "metadata": metadata})
            if "status" in document:
                patch = patches.merge({"status": document["status"]})
                name, place = made["metadata"]["name"], metadata.get("namespace", "")
                await self.client.patch(kind, name, patch=patch, namespace=place, subresource="status")

    async def patch_status(self, known: ObjectT, content: Any) -> ObjectT:
        """Merges content into the status of an object."""
        return await self.client.patch(
            type(known),
            known.metadata.name,
            patch=patches.merge({"status": content}),
            namespace=known.metadata.namespace,
            subresource="status",
        )

    async def find(self, kind: target.Of[ObjectT], name: str, namespace: str = "default") -> ObjectT | None:
        """An object, or None where there is none of the name."""
        try:
            return await self.client.get(kind, name, namespace=namespace if target.of(kind).namespaced else "")
        except errors.ObjectNotFoundError:
            return None

    async def all_of(self, kind: target.Of[ObjectT], namespace: str = "") -> tuple[ObjectT, ...]:
        return (await self.client.list(kind, Selection(namespace))).items

    # Pods

    async def pod(self, name: str) -> pod.Pod:
        return await self.client.get(pod.Pod, name, namespace="default")

    async def node_of(self, name: str) -> str:
        """The node that a pod is bound to, or an empty text."""
        return str((await self.pod(name)).spec.node_name)

    async def condition(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of a pod's PodScheduled condition; empty for a pod that was not tried."""
        condition = conditions.find((await self.pod(name)).status.conditions, wellknown.POD_SCHEDULED)
        return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)

    async def why(self, name: str) -> str:
        """Why a pod is not scheduled; empty for a pod that is, or was not tried."""
        status, _, message = await self.condition(name)
        return "" if status == "True" else message

    async def claims_of(self, name: str) -> list[Claim]:
        """The claims that were made for a pod."""
        statuses = (await self.pod(name)).status.resource_claim_statuses
        return [await self.claim(each.resource_claim_name) for each in statuses if each.resource_claim_name]

    # Claims

    async def claim(self, name: str) -> Claim:
        return await self.client.get(Claim, name, namespace="default")

    async def devices(self, name: str) -> list[str]:
        """The devices of a claim as pool/device."""
        allocation = (await self.claim(name)).status.allocation
        return [] if allocation is None else [f"{each.pool}/{each.device}" for each in allocation.devices.results]

    async def users(self, name: str) -> list[str]:
        """The pods that a claim is reserved for, by name."""
        return sorted(each.name for each in (await self.claim(name)).status.reserved_for)
