"""Serving certificate of a node's endpoint: from the operator, or self-signed.

As with a kubelet, API servers verify it only if they have its authority.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import pathlib
import ssl
import tempfile
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drachma import errors

_DAYS = 365
_SKEW = dt.timedelta(hours=1)


class ServingCertificate(NamedTuple):
    """TLS settings of an endpoint, and its certificate (PEM)."""

    context: ssl.SSLContext
    certificate: bytes


def make(name: str, *, address: str, client_authority: bytes, now: dt.datetime) -> ServingCertificate:
    """Make a self-signed certificate. Clients may present certificates of the given authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = ec.generate_private_key(ec.SECP256R1())
    encoded = _certificate(name, address, key, now).public_bytes(serialization.Encoding.PEM)
    with tempfile.TemporaryDirectory() as folder:
        # An SSL context reads certificates from files only.
        file = pathlib.Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + encoded
        )
        context.load_cert_chain(file)
    _accept_clients(context, client_authority)
    return ServingCertificate(context, encoded)


def load(certificate: pathlib.Path, key: pathlib.Path, *, client_authority: bytes) -> ServingCertificate:
    """Read a serving certificate. Clients may present certificates of the given authority.

    Raises:
        errors.NodeError: a file cannot be read, or has no certificate or key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        encoded = certificate.read_bytes()
    except OSError as error:
        detail = error.strerror or error
        raise errors.NodeError(f"serving certificate {certificate} with key {key}: cannot be read: {detail}") from error
    _accept_clients(context, client_authority)
    return ServingCertificate(context, encoded)


def _accept_clients(context: ssl.SSLContext, authority: bytes) -> None:
    """Accept client certificates of an authority, if there is one."""
    if authority:
        context.load_verify_locations(cadata=authority.decode())
        context.verify_mode = ssl.CERT_OPTIONAL


def _certificate(name: str, address: str, key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}@{int(now.timestamp())}")])
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    return (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(own)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
