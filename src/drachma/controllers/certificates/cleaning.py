"""Controller that deletes old certificate signing requests, because kubelets keep making new ones."""

import base64
import binascii
import datetime as dt
from typing import Final

from cryptography import x509

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.client import patches
from drachma.runtime import Surroundings, controller

PERIOD: Final = 3600.0
SETTLED: Final = dt.timedelta(hours=1)
"""Time after which issued, denied and failed requests are deleted."""

PENDING: Final = dt.timedelta(hours=24)
"""Time after which undecided requests, and approved ones that were never issued, are deleted."""


def is_over(request: csr.CertificateSigningRequest, now: dt.datetime) -> bool:
    """Return True if a request is old enough to be deleted."""
    status = request.status
    if not status.conditions and _is_older(request.metadata.creation_timestamp, PENDING, now):
        return True
    for condition in status.conditions:
        if condition.type in (csr.DENIED, csr.FAILED) and _is_older(condition.last_update_time, SETTLED, now):
            return True
        stay = SETTLED if status.certificate else PENDING
        if condition.type == csr.APPROVED and _is_older(condition.last_update_time, stay, now):
            return True
    return any(each.type == csr.APPROVED for each in status.conditions) and _has_expired(status.certificate, now)


class RequestCleaning:
    """Deletes old requests once an hour."""

    name: Final = "csrcleaner"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._requests: Final = surroundings.informers.of(csr.CertificateSigningRequest).cache

    async def run(self) -> None:
        await controller.every(PERIOD, self._clean, clock=self._clock, name=self.name)

    async def _clean(self) -> None:
        now = self._clock.utc()
        for each in [each for each in self._requests if is_over(each, now)]:
            try:
                await self._client.delete(
                    csr.CertificateSigningRequest, each.metadata.name, preconditions=patches.same(each)
                )
            except (errors.ObjectNotFoundError, errors.ObjectConflictError):
                # Deleted already, perhaps replaced by another one.
                continue


def _is_older(time: dt.datetime | None, age: dt.timedelta, now: dt.datetime) -> bool:
    return time is not None and now - time > age


def _has_expired(certificate: str, now: dt.datetime) -> bool:
    if not certificate:
        return False
    try:
        return x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc < now
    except (binascii.Error, ValueError):
        # Another signer may use another format; such a request is deleted by its age.
        return False
