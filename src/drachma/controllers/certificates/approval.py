"""Approves what kubelets ask for by themselves: certificates by which they show the API server who they are.

A node asks for its own again, or somebody who may bring nodes in asks for one. Roles say who may
(``certificatesigningrequests/selfnodeclient`` and ``/nodeclient``); whatever else is asked for waits for a person.
"""

import logging
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.client import target
from drachma.controllers.certificates import requests, signers
from drachma.runtime import Surroundings, controller, informer, workqueue
from drachma.values import certificaterequests

WORKERS: Final = 5

_REVIEWS: Final = target.metadata_of(
    "authorization.k8s.io", "v1", plural="subjectaccessreviews", kind="SubjectAccessReview", namespaced=False
)
_log = logging.getLogger(__name__)


class Permission(NamedTuple):
    """What who asks must be allowed to do, and what is said when that is so."""

    subresource: str
    message: str


OWN: Final = Permission("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
OTHERS: Final = Permission("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def permissions(
    spec: csr.CertificateSigningRequestSpec, request: certificaterequests.Request
) -> tuple[Permission, ...]:
    """Any of these is enough for a request; none where it is not a kubelet's."""
    if spec.signer_name != csr.KUBELET_CLIENT or signers.kubelet_client(request, spec.usages) is not None:
        return ()
    return (OWN, OTHERS) if spec.username == request.common_name else (OTHERS,)


class RequestApproval:
    """Approves requests."""

    name: Final = "csrapproving"

    def __init__(self, surroundings: Surroundings) -> None:
        shared = surroundings.informers.of(csr.CertificateSigningRequest)
        self._client: Final = surroundings.client
        self._requests: Final = shared.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        shared.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _see(self, new: csr.CertificateSigningRequest) -> None:
        self._queue.add(new.metadata.name)

    async def _reconcile(self, name: str) -> controller.Again | None:
        waiting = self._requests.get(name)
        if waiting is None or waiting.status.certificate or _is_decided(waiting.status):
            return None
        required = permissions(waiting.spec, requests.read(waiting))
        for permission in required:
            if await self._has(waiting.spec, permission):
                await self._approve(waiting, permission)
                return None
        if required:
            # Roles may be given later.
            _log.debug("%s: is a kubelet's, and who asks for it may not", name)
            return controller.AGAIN
        return None

    async def _has(self, spec: csr.CertificateSigningRequestSpec, permission: Permission) -> bool:
        who: dict[str, Any] = {"user": spec.username, "groups": list(spec.groups)}
        if spec.uid:
            who["uid"] = spec.uid
        if spec.extra:
            who["extra"] = {key: list(values) for key, values in spec.extra.items()}
        what = {
            "group": "certificates.k8s.io",
            "version": "*",
            "resource": "certificatesigningrequests",
            "subresource": permission.subresource,
            "verb": "create",
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**who, "resourceAttributes": what},
        }
        answer = await self._client.create_document(_REVIEWS, review)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _approve(self, waiting: csr.CertificateSigningRequest, permission: Permission) -> None:
        condition = {"type": csr.APPROVED, "status": "True", "reason": "AutoApproved", "message": permission.message}
        try:
            await requests.add_condition(self._client, waiting, condition, subresource="approval")
        except errors.ObjectNotFoundError:
            return


def _is_decided(status: csr.CertificateSigningRequestStatus) -> bool:
    return any(csr.condition(status, kind) is not None for kind in (csr.APPROVED, csr.DENIED))
