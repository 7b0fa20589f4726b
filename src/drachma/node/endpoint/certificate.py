"""The certificate of a node's endpoint, signed by itself: as with a kubelet, API servers do not look who signed it."""

from __future__ import annotations

import datetime as dt
import ipaddress
import pathlib
import ssl
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 365
_SKEW = dt.timedelta(hours=1)


def context(name: str, *, address: str, client_authority: bytes, now: dt.datetime) -> ssl.SSLContext:
    """How to serve with a new certificate; clients may show theirs, if that authority has signed it."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(name, address, key, now)
    with tempfile.TemporaryDirectory() as folder:
        # The only way into an SSL context leads through files.
        file = pathlib.Path(folder) / "pair.pem"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        made.load_cert_chain(file)
    if client_authority:
        made.load_verify_locations(cadata=client_authority.decode())
        made.verify_mode = ssl.CERT_OPTIONAL
    return made


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
