"""TLS bootstrapping of a node agent, as the kubelet does it: from a bootstrap token to a client certificate.

A client with a bootstrap token may request the certificate of a node, and with that certificate the agent is the node.
It starts from the kubeconfig with that certificate from then on. Before the certificate expires the node requests the
next one, as itself.
"""

from __future__ import annotations

import base64
import datetime as dt
import logging
import pathlib
import random
from typing import Any, Final, Protocol

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drachma import errors
from drachma.api import certificatesigningrequest
from drachma.client import Client, access, http
from drachma.process import eventloop
from drachma.runtime import clock
from drachma.server.access import kubeconfig

_log = logging.getLogger(__name__)

Request = certificatesigningrequest.CertificateSigningRequest

_USAGES: Final = ["digital signature", "client auth"]
_GROUP: Final = "system:nodes"
_LOOK_SECONDS: Final = 0.5
_FIRST_RETRY: Final = 10.0
_LONGEST_RETRY: Final = 600.0
_LONGEST_WAIT: Final = 900.0
"""Seconds until the request must be approved, as a kubelet has it."""


def obtain(bootstrap: access.Access, node: str, *, file: pathlib.Path) -> None:
    """Request a certificate for a node by a bootstrap token, and write a kubeconfig that only its owner can read.

    Raises:
        errors.NodeError: the request was denied, or was not signed in time.
        errors.RefusedError, errors.UnreachableError: the server refuses the request, or does not answer.
        errors.RefusedFileError: the file cannot be written.
    """
    time = clock.SystemClock()

    async def ask() -> access.KeyPair:
        async with http.HttpClient(bootstrap, clock=time, manager="kubelet") as client:
            return await _key_pair(client, node, time=time)

    with eventloop.runner() as runner:
        key_pair = runner.run(ask())
    kubeconfig.write(file, _kubeconfig(bootstrap, node, key_pair))


def is_usable(file: pathlib.Path, *, now: dt.datetime) -> bool:
    """Return True if there is a kubeconfig of an earlier start whose certificate, if it has one, is still valid.

    Raises:
        errors.AccessError: the file cannot be read, or is no kubeconfig.
    """
    if not file.exists():
        return False
    key_pair = http.find_access(file).key_pair
    return key_pair is None or now < x509.load_pem_x509_certificate(key_pair.certificate).not_valid_after_utc


class Shows(Protocol):
    """A client that can change its certificate."""

    def show(self, key_pair: access.KeyPair) -> None: ...


class Renewal:
    """Renewal of a node's certificate, each time before it expires."""

    def __init__(
        self, apiserver: access.Access, node: str, *, file: pathlib.Path, time: clock.Clock, rng: random.Random
    ) -> None:
        """``apiserver`` is the node's current access; ``file`` is the kubeconfig that is rewritten each time."""
        self._access: Final = apiserver
        self._node: Final = node
        self._file: Final = file
        self._clock: Final = time
        self._rng: Final = rng

    async def run(self, client: Client, connections: Shows) -> None:
        """Renew the certificate until cancelled. Return at once if the node has none."""
        key_pair = self._access.key_pair
        while key_pair is not None:
            renewal = renewal_time(key_pair.certificate, self._rng)
            await self._clock.sleep(max((renewal - self._clock.utc()).total_seconds(), 0.0))
            key_pair = await self._renew(client)
            connections.show(key_pair)
            _log.info("node %s: has a new certificate", self._node)

    async def _renew(self, client: Client) -> access.KeyPair:
        """Return a new certificate after writing the kubeconfig; retry until both succeed."""
        pause = _FIRST_RETRY
        while True:
            try:
                key_pair = await _key_pair(client, self._node, time=self._clock)
                kubeconfig.write(self._file, _kubeconfig(self._access, self._node, key_pair))
                return key_pair
            except (errors.NodeError, errors.RefusedError, errors.UnreachableError, errors.RefusedFileError) as error:
                _log.warning("node %s: its certificate is not renewed yet: %s", self._node, error)
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_RETRY)


def renewal_time(certificate: bytes, rng: random.Random) -> dt.datetime:
    """Return the time to renew a certificate: after 70 to 90 percent of its life, at random, as kubelets do."""
    parsed = x509.load_pem_x509_certificate(certificate)
    life = parsed.not_valid_after_utc - parsed.not_valid_before_utc
    return parsed.not_valid_before_utc + life * (0.7 + 0.2 * rng.random())


async def _key_pair(client: Client, node: str, *, time: clock.Clock) -> access.KeyPair:
    """Return a certificate for a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = await _certificate(client, _request(key, node), time=time)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return access.KeyPair(certificate, private)


async def _certificate(client: Client, request: dict[str, Any], *, time: clock.Clock) -> bytes:
    created = await client.create_document(Request, request)
    name: str = created["metadata"]["name"]
    until = time.monotonic() + _LONGEST_WAIT
    while True:
        status = (await client.get(Request, name)).status
        for kind in (certificatesigningrequest.DENIED, certificatesigningrequest.FAILED):
            problem = certificatesigningrequest.condition(status, kind)
            if problem is not None:
                raise errors.NodeError(f"certificate signing request {name}: {kind.lower()}: {problem.message}")
        if status.certificate:
            return base64.b64decode(status.certificate)
        if time.monotonic() >= until:
            raise errors.NodeError(f"certificate signing request {name}: was not signed in {_LONGEST_WAIT:g} s")
        await time.sleep(_LOOK_SECONDS)


def _request(key: ec.EllipticCurvePrivateKey, node: str) -> dict[str, Any]:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _GROUP),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
        ]
    )
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": certificatesigningrequest.KUBELET_CLIENT,
            "usages": _USAGES,
        },
    }


def _kubeconfig(apiserver: access.Access, node: str, key_pair: access.KeyPair) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": apiserver.server}
    if apiserver.certificate_authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(apiserver.certificate_authority).decode()
    if apiserver.tls_server_name:
        cluster["tls-server-name"] = apiserver.tls_server_name
    if apiserver.skips_verification:
        cluster["insecure-skip-tls-verify"] = True
    user = {
        "client-certificate-data": base64.b64encode(key_pair.certificate).decode(),
        "client-key-data": base64.b64encode(key_pair.key).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": node, "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": node}}],
        "current-context": "default",
    }
