"""Requests for certificates, for tests: signed by a key of their own."""

import base64
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())


def pem(name: str = "ann", *groups: str, hosts: Sequence[str] = (), addresses: Sequence[str] = ()) -> bytes:
    """A request in the name of somebody in some groups, for some names."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def encoded(name: str = "ann", *groups: str, hosts: Sequence[str] = (), addresses: Sequence[str] = ()) -> str:
    """The same as JSON has it."""
    return base64.b64encode(pem(name, *groups, hosts=hosts, addresses=addresses)).decode()
