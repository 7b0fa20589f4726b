"""The server's own certificates: an authority that is created once, and a server certificate that is renewed.

They are kept in the data directory next to the store, so that kubeconfigs of clients stay valid over restarts. Keys are
readable by their owner only.
"""

import ipaddress
import os
import pathlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drachma import errors

AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 365
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
"""User as which this server connects to nodes. It is no user of the API server itself."""
_RENEW_BEFORE: Final = timedelta(days=30)
_SKEW: Final = timedelta(hours=1)


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of certificates and keys."""

    authority: pathlib.Path
    authority_key: pathlib.Path
    certificate: pathlib.Path
    key: pathlib.Path


def ensure(folder: pathlib.Path, *, hosts: Iterable[str], now: datetime) -> Files:
    """Return the certificates in a folder; create missing ones, and renew those that expire soon or lack a host.

    A folder with ``tls.crt`` and ``tls.key``, as cert-manager and a mounted Secret have them, is used as it is.

    Raises:
        errors.RefusedFileError: the folder cannot be used, or has other files under these names.
    """
    mounted_certificate, mounted_key = folder / "tls.crt", folder / "tls.key"
    if mounted_certificate.exists() and mounted_key.exists():
        return Files(
            authority=folder / "ca.crt",
            authority_key=folder / "ca.key",
            certificate=mounted_certificate,
            key=mounted_key,
        )
    files = Files(
        authority=folder / "ca.crt",
        authority_key=folder / "ca.key",
        certificate=folder / "server.crt",
        key=folder / "server.key",
    )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not files.authority.exists() or not files.authority_key.exists():
            _make_authority(files, now)
        authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
        names = sorted(set(hosts))
        if not _is_good(files, names, authority=authority, now=now):
            _make_server(files, names, authority=authority, now=now)
    except OSError as error:
        raise errors.RefusedFileError(f"certificates in {folder}: {error.strerror} ({error.filename})") from error
    except ValueError as error:
        raise errors.RefusedFileError(
            f"certificates in {folder}: cannot be read: {error}; move the files away to have new ones made"
        ) from error
    return files


def renew(files: Files, *, now: datetime) -> bool:
    """Replace a server certificate that expires soon by one for the same hosts, and return True if that was due.

    Certificates without the key of their authority belong to another program, which renews them.

    Raises:
        errors.RefusedFileError: the files cannot be read or written.
    """
    try:
        if not files.authority_key.exists():
            return False
        authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = sorted(str(each.value) for each in names)
        if _is_good(files, hosts, authority=authority, now=now):
            return False
        _make_server(files, hosts, authority=authority, now=now)
    except OSError as error:
        raise errors.RefusedFileError(f"certificate {files.certificate}: {error.strerror}") from error
    except (ValueError, x509.ExtensionNotFound) as error:
        raise errors.RefusedFileError(f"certificate {files.certificate}: cannot be read: {error}") from error
    return True


def make_client(files: Files, *, user: str, groups: Iterable[str] = (), now: datetime) -> tuple[bytes, bytes]:
    """Return a client certificate and its key as PEM, with the user as common name and groups as organizations."""
    authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, user),
        ]
    )
    builder = _builder(subject, authority.subject, key=key, days=SERVER_DAYS, now=now)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    # All authorities that are made here have one name. A client that trusts several finds the right one by its key.
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(_public_key(authority)), critical=False
    )
    certificate = builder.sign(_load_key(files.authority_key), hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def kubelet_client(files: Files, *, now: datetime) -> tuple[pathlib.Path, pathlib.Path]:
    """Create the certificate and key that the server presents to nodes; those of an earlier start are replaced.

    The user is in no group. Nodes ask the API server about its permissions, and its roles allow the API of nodes only.
    """
    certificate, key = make_client(files, user=KUBELET_CLIENT, now=now)
    folder = files.authority.parent
    at = folder / "apiserver-kubelet-client.crt", folder / "apiserver-kubelet-client.key"
    at[0].write_bytes(certificate)
    _write_private(at[1], key)
    return at


def _make_authority(files: Files, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drachma-ca")])
    builder = _builder(name, name, key=key, days=AUTHORITY_DAYS, now=now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    _write_private(files.authority_key, _pem(key))
    files.authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _make_server(files: Files, hosts: list[str], *, authority: x509.Certificate, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drachma-apiserver")])
    builder = _builder(name, authority.subject, key=key, days=SERVER_DAYS, now=now)
    builder = builder.add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(_public_key(authority)), critical=False
    )
    certificate = builder.sign(_load_key(files.authority_key), hashes.SHA256())
    _write_private(files.key, _pem(key))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _is_good(files: Files, hosts: list[str], *, authority: x509.Certificate, now: datetime) -> bool:
    if not files.certificate.exists() or not files.key.exists():
        return False
    certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    if certificate.issuer != authority.subject or certificate.not_valid_after_utc - _RENEW_BEFORE < now:
        return False
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(_names(hosts)) <= set(names)


def _builder(
    subject: x509.Name, issuer: x509.Name, *, key: ec.EllipticCurvePrivateKey, days: int, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _public_key(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("the authority's key is not an elliptic curve key")
    return key


def _load_key(path: pathlib.Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} is not an elliptic curve key")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_private(path: pathlib.Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
