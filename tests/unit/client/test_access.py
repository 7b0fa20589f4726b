"""The access of a pod's service account."""

import pathlib

import pytest

from drachma import errors
from drachma.client import access

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def mount(tmp_path: pathlib.Path) -> pathlib.Path:
    for name, content in (("token", "secret\n"), ("ca.crt", "authority"), ("namespace", "team\n")):
        (tmp_path / name).write_text(content)
    return tmp_path


def test_the_service_account_is_read(mount: pathlib.Path) -> None:
    assert access.load_service_account(environment=INSIDE, mount=mount) == access.Access(
        server="https://10.96.0.1:443",
        source=f"service account {mount}",
        namespace="team",
        certificate_authority=b"authority",
        token_file=mount / "token",
    )


def test_addresses_of_version_six_are_bracketed(mount: pathlib.Path) -> None:
    environment = {**INSIDE, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert access.load_service_account(environment=environment, mount=mount).server == "https://[fd00::1]:443"


def test_outside_of_a_cluster(mount: pathlib.Path) -> None:
    with pytest.raises(errors.AccessError, match="not inside a cluster"):
        access.load_service_account(environment={}, mount=mount)


def test_a_missing_token_is_named(mount: pathlib.Path) -> None:
    (mount / "token").unlink()
    with pytest.raises(errors.AccessError, match="token: cannot be read: No such file"):
        access.load_service_account(environment=INSIDE, mount=mount)


def test_credentials_are_not_shown() -> None:
    pair = access.KeyPair(b"certificate", b"the key")
    shown = repr(access.Access(server="https://s", source="here", token="the token", password="pass", key_pair=pair))
    assert shown == "Access('https://s', 'here')"
    assert repr(pair) == "KeyPair(11 bytes)"
