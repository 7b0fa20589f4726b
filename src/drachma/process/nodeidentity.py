"""How the agent of a node comes into a cluster that does not know it: by a token it asks for a certificate of its own.

That is the kubelet's TLS bootstrapping: whoever shows a bootstrap token may ask for the certificate of a node, and with
that certificate the agent is the node. The kubeconfig that it writes is what it starts with from then on.
"""

from __future__ import annotations

import base64
import pathlib
from typing import Any, Final

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

Request = certificatesigningrequest.CertificateSigningRequest

_USAGES: Final = ["digital signature", "client auth"]
_GROUP: Final = "system:nodes"
_LOOK_SECONDS: Final = 0.5
_LONGEST_WAIT: Final = 900.0
"""Seconds that somebody has to approve the request, as a kubelet has it."""


def obtain(way_in: access.Access, node: str, *, file: pathlib.Path) -> None:
    """Gets a certificate for a node by a bootstrap token, and writes a kubeconfig with it, for its owner alone.

    Raises:
        errors.NodeError: the request was denied, or nobody signed it in time.
        errors.RefusedError, errors.UnreachableError: the server does not take it.
        errors.RefusedFileError: the file cannot be written.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    time = clock.SystemClock()

    async def ask() -> bytes:
        async with http.HttpClient(way_in, time=time, manager="kubelet") as client:
            return await _certificate(client, _request(key, node), time=time)

    with eventloop.runner() as runner:
        certificate = runner.run(ask())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    kubeconfig.write(file, _kubeconfig(way_in, node, certificate=certificate, key=private))


async def _certificate(client: Client, request: dict[str, Any], *, time: clock.Clock) -> bytes:
    made = await client.create_document(Request, request)
    name: str = made["metadata"]["name"]
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
            raise errors.NodeError(f"certificate signing request {name}: nobody signed it in {_LONGEST_WAIT:g} s")
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


def _kubeconfig(way_in: access.Access, node: str, *, certificate: bytes, key: bytes) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": way_in.server}
    if way_in.certificate_authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(way_in.certificate_authority).decode()
    if way_in.tls_server_name:
        cluster["tls-server-name"] = way_in.tls_server_name
    if way_in.skips_verification:
        cluster["insecure-skip-tls-verify"] = True
    user = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": node, "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": node}}],
        "current-context": "default",
    }
