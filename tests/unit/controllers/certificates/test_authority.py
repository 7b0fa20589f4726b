"""Certificates that an authority signs."""

import datetime as dt
import pathlib

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drachma import errors
from drachma.controllers.certificates import authority
from drachma.runtime import KeyPair
from drachma.server.access import certificates
from drachma.values import certificaterequests
from tests import certificaterequests as builders

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
USES = ("digital signature", "client auth")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    files = certificates.ensure(tmp_path_factory.mktemp("pki"), hosts=["h"], now=NOW)
    return KeyPair(files.authority.read_bytes(), files.authority_key.read_bytes())


def signed(pair: KeyPair, pem: bytes, *, seconds: int | None = None, now: dt.datetime = NOW) -> x509.Certificate:
    certificate = authority.Authority(pair).sign(certificaterequests.read(pem), USES, seconds=seconds, now=now)
    return x509.load_pem_x509_certificate(certificate)


def test_a_certificate_says_what_was_asked_for(pair: KeyPair) -> None:
    certificate = signed(pair, builders.pem("ann", "dev", hosts=["n"], addresses=["10.0.0.1"]))
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(pair.certificate))
    assert [each.value for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["ann"]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(None, dt.timedelta(days=365) - authority.BACKDATE, id="a-year"),
        pytest.param(3600, dt.timedelta(hours=1), id="an-hour"),
        pytest.param(1, dt.timedelta(minutes=10), id="no-time"),
        pytest.param(10**9, dt.timedelta(days=365) - authority.BACKDATE, id="too-long"),
    ],
)
def test_how_long_one_lasts(pair: KeyPair, seconds: int | None, want: dt.timedelta) -> None:
    certificate = signed(pair, builders.pem(), seconds=seconds)
    assert (certificate.not_valid_before_utc, certificate.not_valid_after_utc) == (NOW - authority.BACKDATE, NOW + want)


def test_none_lasts_longer_than_the_authority(pair: KeyPair) -> None:
    end = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
    assert signed(pair, builders.pem(), now=end - dt.timedelta(days=1)).not_valid_after_utc == end
    with pytest.raises(errors.InvalidValueError, match="the signer has expired"):
        signed(pair, builders.pem(), now=end)


def test_a_key_of_another_certificate_is_refused(pair: KeyPair, tmp_path: pathlib.Path) -> None:
    other = certificates.ensure(tmp_path, hosts=["h"], now=NOW)
    with pytest.raises(errors.InvalidValueError, match="not that of the certificate"):
        authority.Authority(KeyPair(pair.certificate, other.authority_key.read_bytes()))
    with pytest.raises(errors.InvalidValueError, match="cannot be read"):
        authority.Authority(KeyPair(b"x", b"y"))
