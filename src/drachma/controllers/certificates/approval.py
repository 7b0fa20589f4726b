"""Approval of kubelets' own requests: client certificates by which they authenticate to the API server.

A node renews its own certificate, or a user who may add nodes requests one. Roles grant either
(``certificatesigningrequests/selfnodeclient`` and ``/nodeclient``). All other requests wait for a user to approve them.
"""

import logging
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.client import target
from drachma.controllers import objectwrites
from drachma.controllers.certificates import signers
from drachma.runtime import Surroundings, controller, informer, workqueue
from drachma.values import certificaterequests

WORKERS: Final = 5

_REVIEWS: Final = target.metadata_of(
    "authorization.k8s.io", "v1", plural="subjectaccessreviews", kind="SubjectAccessReview", namespaced=False
)
_log = logging.getLogger(__name__)


class Permission(NamedTuple):
    """Permission that the requester needs, and the approval message."""

    subresource: str
    message: str


OWN: Final = Permission("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
OTHERS: Final = Permission("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def permissions(
    spec: csr.CertificateSigningRequestSpec, request: certificaterequests.Request
) -> tuple[Permission, ...]:
    """Return the permissions of which one is enough to approve a request; empty if it is not a kubelet's."""
    if spec.signer_name != csr.KUBELET_CLIENT or signers.kubelet_client(request, spec.usages) is not None:
        return ()
    return (OWN, OTHERS) if spec.username == request.common_name else (OTHERS,)


class RequestApproval:
    """Approves requests."""

    name: Final = "csrapproving"

    def __init__(self, surroundings: Surroundings) -> None:
        requests = surroundings.informers.of(csr.CertificateSigningRequest)
        self._client: Final = surroundings.client
        self._writer: Final = objectwrites.Writer(surroundings.client, requests)
        self._requests: Final = requests.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        requests.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: csr.CertificateSigningRequest) -> None:
        self._queue.add(new.metadata.name)

    async def _reconcile(self, name: str) -> controller.Again | None:
        request = self._requests.get(name)
        if request is None or request.status.certificate or _is_decided(request.status):
            return None
        required = permissions(request.spec, signers.read_request(request))
        for permission in required:
            if await self._has(request.spec, permission):
                await self._approve(request, permission)
                return None
        if required:
            # The requester may get the role later.
            _log.debug("%s: is a kubelet's, and the requester lacks the permission", name)
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

    async def _approve(self, request: csr.CertificateSigningRequest, permission: Permission) -> None:
        condition = {"type": csr.APPROVED, "status": "True", "reason": "AutoApproved", "message": permission.message}
        try:
            await signers.add_condition(self._writer, request, condition, subresource="approval")
        except errors.ObjectNotFoundError:
            return


def _is_decided(status: csr.CertificateSigningRequestStatus) -> bool:
    return any(csr.condition(status, kind) is not None for kind in (csr.APPROVED, csr.DENIED))
