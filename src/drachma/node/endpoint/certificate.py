"""The certificate of a node's endpoint: given by the operator, or signed by itself.

As with a kubelet, API servers verify it only if they are told by which authority.
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
    """Make a new certificate to serve with; clients may show theirs, if that authority has signed it."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = ec.generate_private_key(ec.SECP256R1())
    encoded = _certificate(name, address, key, now).public_bytes(serialization.Encoding.PEM)
    with tempfile.TemporaryDirectory() as folder:
        # The only way into an SSL context leads through files.
        file = pathlib.Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + encoded
        )
        made.load_cert_chain(file)
    _accept_clients(made, client_authority)
    return ServingCertificate(made, encoded)


def load(certificate: pathlib.Path, key: pathlib.Path, *, client_authority: bytes) -> ServingCertificate:
    """Read a certificate to serve with, like make().

    Raises:
        errors.NodeError: a file cannot be read, or has no certificate or key in it.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        made.load_cert_chain(certificate, key)
        encoded = certificate.read_bytes()
    except OSError as error:
        detail = error.strerror or error
        raise errors.NodeError(f"serving certificate {certificate} with key {key}: cannot be read: {detail}") from error
    _accept_clients(made, client_authority)
    return ServingCertificate(made, encoded)


def _accept_clients(context: ssl.SSLContext, authority: bytes) -> None:
    """Let clients show certificates of an authority, if there is one."""
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
