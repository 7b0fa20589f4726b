"""Controller that signs approved requests, for the signers that Kubernetes itself has."""

import base64
from typing import Final

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.controllers import objectwrites
from drachma.controllers.certificates import authority, signers
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 5


class RequestSigning:
    """Signs requests. It needs an authority (``surroundings.credentials``)."""

    name: Final = "csrsigning"

    def __init__(self, surroundings: Surroundings) -> None:
        pair = surroundings.credentials.signing
        assert pair is not None, "made only where certificates can be signed"
        requests = surroundings.informers.of(csr.CertificateSigningRequest)
        self._authority: Final = authority.Authority(pair)
        self._writer: Final = objectwrites.Writer(surroundings.client, requests)
        self._clock: Final = surroundings.clock
        self._requests: Final = requests.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        requests.add_handler(informer.Handler.on_write(self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: csr.CertificateSigningRequest) -> None:
        self._queue.add(new.metadata.name)

    async def _reconcile(self, name: str) -> None:
        approved = self._requests.get(name)
        if approved is None or not _is_due(approved.status) or approved.spec.signer_name not in signers.RULES:
            return
        request = signers.read_request(approved)
        problem = signers.RULES[approved.spec.signer_name](request, approved.spec.usages)
        try:
            if problem is not None:
                await self._fail(approved, problem)
                return
            certificate = self._authority.sign(
                request, approved.spec.usages, seconds=approved.spec.expiration_seconds, now=self._clock.utc()
            )
            await self._issue(approved, certificate)
        except errors.ObjectNotFoundError:
            return

    async def _fail(self, approved: csr.CertificateSigningRequest, problem: str) -> None:
        condition = {"type": csr.FAILED, "status": "True", "reason": "SignerValidationFailure", "message": problem}
        await signers.add_condition(self._writer, approved, condition, subresource="status")

    async def _issue(self, approved: csr.CertificateSigningRequest, certificate: bytes) -> None:
        change = {"certificate": base64.b64encode(certificate).decode()}
        await self._writer.update_status(approved, change, only_if_unchanged=True)


def _is_due(status: csr.CertificateSigningRequestStatus) -> bool:
    """Return True if a request is approved and neither signed nor failed."""
    if status.certificate or csr.condition(status, csr.DENIED) is not None:
        return False
    failed = csr.condition(status, csr.FAILED)
    return csr.condition(status, csr.APPROVED) is not None and (failed is None or failed.status != "True")
