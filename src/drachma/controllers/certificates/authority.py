"""Signing of certificate requests: with the requested names and the approved usages, and nothing else of a request.

Refused: an invalid key, and an authority that has expired. The result is never an authority.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose

from drachma import errors
from drachma.runtime.surroundings import KeyPair
from drachma.values.certificaterequests import Request

LONGEST: Final = dt.timedelta(days=365)
SHORTEST: Final = dt.timedelta(minutes=10)
BACKDATE: Final = dt.timedelta(minutes=5)
"""Time by which certificates begin earlier, for clocks that are behind."""

_SHORT: Final = dt.timedelta(hours=8)
"""Certificates with a shorter lifetime get all of it; from longer ones the backdate is deducted."""

_KEY_USES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_NEEDING_AGREEMENT: Final = ("encipher_only", "decipher_only")
_PURPOSES: Final = {
    "any": Purpose.ANY_EXTENDED_KEY_USAGE,
    "server auth": Purpose.SERVER_AUTH,
    "client auth": Purpose.CLIENT_AUTH,
    "code signing": Purpose.CODE_SIGNING,
    "email protection": Purpose.EMAIL_PROTECTION,
    "s/mime": Purpose.EMAIL_PROTECTION,
    "ipsec end system": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": Purpose.TIME_STAMPING,
    "ocsp signing": Purpose.OCSP_SIGNING,
    "microsoft sgc": x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": x509.ObjectIdentifier("2.16.840.1.113730.4.1"),
}


class Authority:
    """A certificate and its key, which sign other certificates."""

    def __init__(self, pair: KeyPair) -> None:
        """Load the pair. Raises InvalidValueError if the certificate or the key is invalid, or they do not match."""
        try:
            self._certificate = x509.load_pem_x509_certificate(pair.certificate)
            key = serialization.load_pem_private_key(pair.key, password=None)
        except (ValueError, TypeError) as error:
            raise errors.InvalidValueError(f"signing authority: cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise errors.InvalidValueError("signing authority: its key is neither RSA nor of an elliptic curve")
        if key.public_key() != self._certificate.public_key():
            raise errors.InvalidValueError("signing authority: the key is not that of the certificate")
        self._key = key

    def sign(self, request: Request, usages: Iterable[str], *, seconds: int | None, now: dt.datetime) -> bytes:
        """Return a signed certificate as PEM, valid for the requested time within bounds and not longer than the
        authority.

        Raises:
            errors.InvalidValueError: the signature of the request is bad, or the authority has expired.
        """
        problem = request.signature_problem()
        if problem is not None:
            raise errors.InvalidValueError(f"unable to verify certificate request signature: {problem}")
        end = self._certificate.not_valid_after_utc
        if now >= end:
            raise errors.InvalidValueError(f"the signer has expired: NotAfter={end}")
        life = lifetime(seconds)
        asked_end = now + life if life < _SHORT else now + life - BACKDATE
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.source.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.source.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(min(asked_end, end))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_identifier(self._certificate, self._key), critical=False)
        )
        uses = tuple(usages)
        if key_usage := _key_usage(uses):
            builder = builder.add_extension(key_usage, critical=True)
        if purposes := sorted(
            {_PURPOSES[use] for use in uses if use in _PURPOSES}, key=lambda each: each.dotted_string
        ):
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if (names := _names(request)) is not None:
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _key_identifier(
    authority: x509.Certificate, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
) -> x509.AuthorityKeyIdentifier:
    try:
        own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def lifetime(seconds: int | None) -> dt.timedelta:
    """Return the lifetime of a certificate that was requested for so many seconds, or without a time."""
    if seconds is None:
        return LONGEST
    return min(max(dt.timedelta(seconds=seconds), SHORTEST), LONGEST)


def _key_usage(usages: tuple[str, ...]) -> x509.KeyUsage | None:
    uses = {_KEY_USES[use] for use in usages if use in _KEY_USES}
    if not uses:
        return None
    if "key_agreement" not in uses:
        # These usages qualify key agreement, and mean nothing without it.
        uses -= set(_NEEDING_AGREEMENT)
    return x509.KeyUsage(**{field: field in uses for field in set(_KEY_USES.values())})


def _names(request: Request) -> x509.SubjectAlternativeName | None:
    try:
        return request.source.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
