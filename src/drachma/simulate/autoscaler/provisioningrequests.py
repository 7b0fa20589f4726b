"""ProvisioningRequests of ``autoscaling.x-k8s.io``: the pods that they stand for, and the answers of the autoscaler.

Two classes of cluster-autoscaler are answered, with its conditions. ``check-capacity`` looks for room on the nodes that
are there; ``best-effort-atomic-scale-up`` also asks for new nodes, for all pods or for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import codec, meta, pod
from drachma.client import patches, target
from drachma.runtime import Surroundings

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
BEST_EFFORT: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

_BOOKED: Final = timedelta(minutes=10)
"""Time for which capacity is kept for the pods of a provisioned request."""
_CONSUMERS: Final = (
    "autoscaling.x-k8s.io/provisioning-request",
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations with which pods name the request that they were admitted with."""
_TEMPLATES: Final = target.metadata_of("", "v1", plural="podtemplates", kind="PodTemplate", namespaced=True)

Document = Mapping[str, Any]


class _Request(meta.Object, frozen=True, kw_only=True):
    """ProvisioningRequest, of which only the metadata is typed."""


_REQUESTS: Final = target.Target(
    group="autoscaling.x-k8s.io",
    versions=("v1",),
    plural="provisioningrequests",
    kind="ProvisioningRequest",
    namespaced=True,
    model=_Request,
    is_optional=True,
)


class PodRequest(NamedTuple):
    """A request without an answer, and its pods."""

    document: Document
    pods: Sequence[pod.Pod]

    @property
    def may_grow(self) -> bool:
        """True if nodes may be added for the request."""
        return bool(self.document["spec"]["provisioningClassName"] == BEST_EFFORT)


class ProvisioningRequests:
    """Requests of one cluster, if it serves them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._turn = 0
        self._turns: dict[str, int] = {}
        """Turn in which each waiting request was tried last, by uid."""
        self._informer: Final = surroundings.informers.of(_REQUESTS, with_documents=True)

    async def next_request(self) -> PodRequest | None:
        """Return a request without an answer: the one that was tried longest ago, or else the oldest.

        Capacity that was kept for too long is given up first.
        """
        unanswered = [each for each in self._documents() if not _is_answered(each)]
        self._turns = {uid: turn for each in unanswered if (turn := self._turns.get(uid := each["metadata"]["uid"], 0))}
        for each in self._documents():
            if _is_true(each, "Provisioned") and self._is_expired(each) and not _is_true(each, "BookingExpired"):
                message = "Capacity reservation time is expired"
                await self._write(each, [("BookingExpired", "True", "CapacityReservationTimeExpired", message)])
        for each in sorted(unanswered, key=self._order):
            self._turn += 1
            self._turns[each["metadata"]["uid"]] = self._turn
            try:
                return PodRequest(each, await self._pods(each))
            except errors.DrachmaError as error:
                await self._write(each, [("Failed", "True", "FailedToCreatePods", str(error))])
        return None

    def _order(self, request: Document) -> tuple[int, str, str]:
        metadata = request["metadata"]
        return self._turns.get(metadata["uid"], 0), metadata["creationTimestamp"], metadata["name"]

    async def booked_pods(self, running_pods: Iterable[pod.Pod]) -> list[pod.Pod]:
        """Return the pods of provisioned requests that do not exist yet, whose capacity is kept."""
        booked: list[pod.Pod] = []
        counts: dict[tuple[str, str], int] = {}
        for each in running_pods:
            names = {each.metadata.annotations[key] for key in _CONSUMERS if key in each.metadata.annotations}
            for name in names:
                counts[each.metadata.namespace, name] = counts.get((each.metadata.namespace, name), 0) + 1
        for document in self._documents():
            if not _is_true(document, "Provisioned") or self._is_expired(document):
                continue
            existing = counts.get((document["metadata"]["namespace"], document["metadata"]["name"]), 0)
            try:
                booked += (await self._pods(document))[existing:]
            except errors.ObjectNotFoundError:
                continue
        return booked

    async def answer(self, request: PodRequest, *, is_found: bool, is_grown: bool) -> None:
        """Write the conditions of a request."""
        parameters = request.document["spec"].get("parameters") or {}
        changes = [("Accepted", "True", "Accepted", "ProvisioningRequest is accepted by ClusterAutoscaler")]
        if is_found:
            reason = "CapacityIsProvisioned" if is_grown else "CapacityIsFound"
            changes.append(("Provisioned", "True", reason, "Capacity is found in the cluster"))
        elif parameters.get("noRetry") == "true" and not request.may_grow:
            changes.append(("Failed", "True", "CapacityIsNotFound", "CA could not find requested capacity"))
        else:
            message = "Capacity is not found, CA will try to find it later."
            changes.append(("Provisioned", "False", "CapacityIsNotFound", message))
        await self._write(request.document, changes)

    def _documents(self) -> list[Document]:
        keys = sorted((each.metadata.namespace, each.metadata.name) for each in self._informer.cache)
        entries = (self._informer.cache.entry(name, namespace=namespace) for namespace, name in keys)
        documents = [entry.document() for entry in entries if entry is not None]
        return [each for each in documents if each["spec"]["provisioningClassName"] in (CHECK_CAPACITY, BEST_EFFORT)]

    def _is_expired(self, request: Document) -> bool:
        since = (_condition(request, "Provisioned") or {}).get("lastTransitionTime")
        return since is not None and self._clock.utc() - datetime.fromisoformat(since) >= _BOOKED

    async def _pods(self, request: Document) -> list[pod.Pod]:
        """Return the pods of a request. Raises errors.DrachmaError if a template is missing or cannot be read."""
        namespace, name = request["metadata"]["namespace"], request["metadata"]["name"]
        pods: list[pod.Pod] = []
        for position, pod_set in enumerate(request["spec"]["podSets"]):
            template = await self._client.get_document(
                _TEMPLATES, pod_set["podTemplateRef"]["name"], namespace=namespace
            )
            content = template.get("template") or {}
            metadata = {
                field: value
                for field, value in (content.get("metadata") or {}).items()
                if field in ("labels", "annotations")
            }
            spec = {key: value for key, value in (content.get("spec") or {}).items() if key != "schedulingGates"}
            for index in range(int(pod_set["count"])):
                identity = f"{name}-{position}-{index}"
                document = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {**metadata, "name": identity, "namespace": namespace, "uid": f"request/{identity}"},
                    "spec": spec,
                }
                pods.append(codec.view(document, pod.Pod))
        return pods

    async def _write(self, request: Document, changes: Sequence[tuple[str, str, str, str]]) -> None:
        """Set conditions by type, status, reason and message. Conditions that stay as they are keep their time."""
        conditions = {each["type"]: each for each in (request.get("status") or {}).get("conditions") or ()}
        for kind, status, reason, message in changes:
            current = conditions.get(kind)
            if current is not None and (current["status"], current["reason"], current["message"]) == (
                status,
                reason,
                message,
            ):
                continue
            conditions[kind] = {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "observedGeneration": request["metadata"].get("generation", 1),
                "lastTransitionTime": meta.time_text(self._clock.utc()),
            }
        metadata = request["metadata"]
        patch = patches.merge(
            {"status": {"conditions": list(conditions.values())}},
            patches.Preconditions(uid=metadata["uid"], resource_version=metadata["resourceVersion"]),
        )
        try:
            latest = await self._client.patch_document(
                _REQUESTS, metadata["name"], namespace=metadata["namespace"], subresource="status", patch=patch
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            return
        self._informer.observe(latest)


def _condition(request: Document, kind: str) -> Document | None:
    conditions = (request.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _is_true(request: Document, kind: str) -> bool:
    condition = _condition(request, kind)
    return condition is not None and bool(condition["status"] == "True")


def _is_answered(request: Document) -> bool:
    return _is_true(request, "Provisioned") or _is_true(request, "Failed")
