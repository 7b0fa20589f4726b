"""Certificates, the admin's token and kubeconfig, and addresses."""

import base64
import pathlib
import stat
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509

from drachma import errors
from drachma.server.access import certificates, kubeconfig

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _names(path: pathlib.Path) -> set[str]:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def test_made_once_and_kept(tmp_path: pathlib.Path) -> None:
    files = certificates.ensure(tmp_path, hosts=["127.0.0.1", "localhost"], now=NOW)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    certificates.ensure(tmp_path, hosts=["localhost"], now=NOW + timedelta(days=300))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert _names(files.certificate) == {"127.0.0.1", "localhost"}
    for key in (files.key, files.authority_key):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("hosts", "days"),
    [
        pytest.param(["localhost", "other.example"], 0, id="a-new-name"),
        pytest.param(["localhost"], 340, id="it-ends-soon"),
    ],
)
def test_renewed_under_the_same_authority(tmp_path: pathlib.Path, hosts: list[str], days: int) -> None:
    files = certificates.ensure(tmp_path, hosts=["localhost"], now=NOW)
    authority, certificate = files.authority.read_bytes(), files.certificate.read_bytes()
    certificates.ensure(tmp_path, hosts=hosts, now=NOW + timedelta(days=days))
    assert files.authority.read_bytes() == authority
    assert files.certificate.read_bytes() != certificate
    assert set(hosts) <= _names(files.certificate)


def test_files_of_others_are_refused(tmp_path: pathlib.Path) -> None:
    certificates.ensure(tmp_path, hosts=["localhost"], now=NOW)
    (tmp_path / "ca.crt").write_text("something else")
    with pytest.raises(errors.RefusedFileError, match="move the files away to have new ones made"):
        certificates.ensure(tmp_path, hosts=["localhost"], now=NOW)
    assert (tmp_path / "ca.crt").read_text() == "something else"


def test_client_certificates_name_user_and_groups(tmp_path: pathlib.Path) -> None:
    files = certificates.ensure(tmp_path, hosts=["localhost"], now=NOW)
    certificate, key = certificates.make_client(files, user="ann", groups=["ops", "dev"], now=NOW)
    loaded = x509.load_pem_x509_certificate(certificate)
    assert loaded.subject.rfc4514_string() == "CN=ann,O=dev,O=ops"
    assert key.startswith(b"-----BEGIN PRIVATE KEY-----")


def test_the_token_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "folder" / "admin.token"
    token = kubeconfig.ensure_token(path)
    assert len(token) >= 32
    assert kubeconfig.ensure_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_for_kubectl(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    kubeconfig.write(path, kubeconfig.document("https://127.0.0.1:6443", authority=b"PEM", token="t"))
    content = yaml.safe_load(path.read_text())
    assert content["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
    }
    assert content["current-context"] == content["contexts"][0]["name"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.RefusedFileError, match=r"kubeconfig .*: cannot be written"):
        kubeconfig.write(tmp_path / "file" / "config", {})
