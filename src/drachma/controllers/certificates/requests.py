"""What the controllers of certificate requests share: reading what is asked for, writing what becomes of it.

Their role lets them update, and not patch.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.client import protocol
from drachma.values import certificaterequests


def read(of: csr.CertificateSigningRequest) -> certificaterequests.Request:
    """What is asked for; an InvalidValueError where nobody can read it."""
    try:
        return certificaterequests.read(base64.b64decode(of.spec.request, validate=True))
    except (binascii.Error, certificaterequests.UnreadableRequestError) as error:
        raise errors.InvalidValueError(f"unable to parse csr {of.metadata.name!r}: {error}") from error


async def add_condition(
    client: protocol.Client, to: csr.CertificateSigningRequest, condition: Mapping[str, Any], *, subresource: str
) -> None:
    """Adds a condition to a request in the version that is known, through a subresource."""
    document = await client.get_document(csr.CertificateSigningRequest, to.metadata.name)
    status = document.get("status") or {}
    conditions = [*(status.get("conditions") or ()), condition]
    await write_status(client, to, {**status, "conditions": conditions}, document=document, subresource=subresource)


async def write_status(
    client: protocol.Client,
    to: csr.CertificateSigningRequest,
    status: Mapping[str, Any],
    *,
    document: Mapping[str, Any],
    subresource: str = "status",
) -> None:
    """Writes a status on the version that was looked at, or not at all: an ObjectConflictError."""
    metadata = {**document["metadata"], "uid": to.metadata.uid, "resourceVersion": to.metadata.resource_version}
    changed = {**document, "metadata": metadata, "status": status}
    await client.update_document(csr.CertificateSigningRequest, changed, subresource=subresource)
