"""Requests for certificates in the form of PKCS 10: read from PEM, and what one says that rules look at.

Public: :func:`read`, which refuses what is no such request, :meth:`Request.signature_problem`.
"""

import re
from typing import Final

import msgspec
from cryptography import exceptions, x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL)
_TYPE: Final = b"CERTIFICATE REQUEST"

WRONG_BLOCK: Final = "PEM block type must be CERTIFICATE REQUEST"


class UnreadableRequestError(ValueError):
    """A text that is no request for a certificate; says why."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed certificate request: its subject, its names, and the request itself."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    source: x509.CertificateSigningRequest

    def signature_problem(self) -> str | None:
        """Return the problem of the signature that proves possession of the key, or None."""
        source = self.source
        key, digest = source.public_key(), source.signature_hash_algorithm
        try:
            match key:
                case rsa.RSAPublicKey() if digest is not None:
                    key.verify(source.signature, source.tbs_certrequest_bytes, padding.PKCS1v15(), digest)
                case ec.EllipticCurvePublicKey() if digest is not None:
                    key.verify(source.signature, source.tbs_certrequest_bytes, ec.ECDSA(digest))
                case ed25519.Ed25519PublicKey():
                    key.verify(source.signature, source.tbs_certrequest_bytes)
                case _:
                    return "x509: cannot verify signature: algorithm unimplemented"
        except exceptions.InvalidSignature:
            return _BAD_SIGNATURES[_family(key)]
        return None


_BAD_SIGNATURES: Final = {
    "rsa": "crypto/rsa: verification error",
    "ecdsa": "x509: ECDSA verification failure",
    "ed25519": "x509: Ed25519 verification failure",
}


def read(pem: bytes) -> Request:
    """The request in the first block of a PEM text.

    Raises:
        UnreadableRequestError: there is none.
    """
    block = _BLOCK.search(pem)
    if block is None or block[1] != _TYPE:
        raise UnreadableRequestError(WRONG_BLOCK)
    try:
        source = x509.load_pem_x509_csr(block[0])
        names = _alternative_names(source)
        return Request(
            # As Go: of several common names the last counts.
            common_name=(_subject(source, NameOID.COMMON_NAME) or ("",))[-1],
            organizations=_subject(source, NameOID.ORGANIZATION_NAME),
            dns_names=tuple(names.get_values_for_type(x509.DNSName)),
            addresses=tuple(map(str, names.get_values_for_type(x509.IPAddress))),
            emails=tuple(names.get_values_for_type(x509.RFC822Name)),
            uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
            source=source,
        )
    except (ValueError, exceptions.UnsupportedAlgorithm) as error:
        raise UnreadableRequestError(f"asn1: structure error: {error}") from None


def _subject(source: x509.CertificateSigningRequest, field: x509.ObjectIdentifier) -> tuple[str, ...]:
    values = (each.value for each in source.subject.get_attributes_for_oid(field))
    return tuple(value if isinstance(value, str) else value.decode("utf-8", "replace") for value in values)


def _alternative_names(source: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName:
    try:
        return source.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def _family(key: object) -> str:
    match key:
        case rsa.RSAPublicKey():
            return "rsa"
        case ec.EllipticCurvePublicKey():
            return "ecdsa"
        case _:
            return "ed25519"
