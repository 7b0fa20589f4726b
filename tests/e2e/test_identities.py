"""Who is who, by kubectl: tokens of accounts, acting as others, and certificates of the right and the wrong kind."""

import datetime as dt
import json
import pathlib
import ssl
import urllib.error
import urllib.request

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.e2e.conftest import Kubectl
from tests.scenarios import processes

NOW = dt.datetime.now(dt.UTC)


def test_the_admin_is_told_who_that_is(kubectl: Kubectl) -> None:
    told = json.loads(kubectl("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert told == {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}


def test_a_token_for_an_account(
    kubectl: Kubectl, namespace: str, tmp_path: pathlib.Path, environment: dict[str, str]
) -> None:
    kubectl("create", "serviceaccount", "app")
    token = kubectl("create", "token", "app", "--duration", "20m").strip()
    content = yaml.safe_load(pathlib.Path(environment["KUBECONFIG"]).read_text())
    content["users"][0]["user"] = {"token": token}
    other = tmp_path / "kubeconfig"
    other.write_text(yaml.safe_dump(content))
    told = json.loads(kubectl("--kubeconfig", str(other), "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert told["username"] == f"system:serviceaccount:{namespace}:app"
    refused = kubectl("--kubeconfig", str(other), "get", "secrets", fails=True)
    assert f'User "system:serviceaccount:{namespace}:app" cannot list resource "secrets"' in refused
    kubectl("delete", "serviceaccount", "app")
    assert "You must be logged in" in kubectl("--kubeconfig", str(other), "get", "secrets", fails=True)


def test_a_token_that_is_too_short(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "app")
    refused = kubectl("create", "token", "app", "--duration", "1m", fails=True)
    assert "may not specify a duration less than 10 minutes" in refused


def test_acting_as_somebody_else(kubectl: Kubectl) -> None:
    told = kubectl("auth", "whoami", "--as", "ann", "--as-group", "dev", "-o", "json")
    assert json.loads(told)["status"]["userInfo"] == {"username": "ann", "groups": ["dev", "system:authenticated"]}
    refused = kubectl("get", "pods", "--as", "ann", fails=True)
    assert 'User "ann" cannot list resource "pods"' in refused
    kubectl("create", "role", "reader", "--verb=list,get", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=ann")
    assert json.loads(kubectl("get", "pods", "--as", "ann", "-o", "json"))["items"] == []


def signed(
    authority: tuple[x509.Name, ec.EllipticCurvePrivateKey],
    *,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    days: int = 1,
) -> bytes:
    """A certificate of the group of administrators, and its key."""
    issuer, signer = authority
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
        x509.NameAttribute(NameOID.COMMON_NAME, "mallory"),
    ]
    until = NOW + dt.timedelta(days=days)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=10))
        .not_valid_after(until)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return made.public_bytes(serialization.Encoding.PEM) + private


def own_authority(server: processes.Process) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(server.authority.read_bytes())
    key = serialization.load_pem_private_key((server.folder / "pki" / "ca.key").read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return certificate.subject, key


def whoami(server: processes.Process, credentials: bytes, folder: pathlib.Path) -> dict[str, object]:
    """Who the server takes a client for that shows a certificate."""
    path = folder / "client.pem"
    path.write_bytes(credentials)
    context = ssl.create_default_context(cafile=str(server.authority))
    context.load_cert_chain(path)
    url = f"{server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    request = urllib.request.Request(url, data=b"{}", headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        info: dict[str, object] = json.loads(answer.read())["status"]["userInfo"]
    return info


def test_a_certificate_of_the_servers_authority_is_a_user(server: processes.Process, tmp_path: pathlib.Path) -> None:
    info = whoami(server, signed(own_authority(server)), tmp_path)
    assert info["username"] == "mallory"


@pytest.mark.parametrize("kind", ["foreign", "named-alike", "expired", "for-servers"])
def test_a_certificate_that_is_no_good_is_nobody(server: processes.Process, tmp_path: pathlib.Path, kind: str) -> None:
    subject, key = own_authority(server)
    other = ec.generate_private_key(ec.SECP256R1())
    made = {
        "foreign": lambda: signed((x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "other")]), other)),
        "named-alike": lambda: signed((subject, other)),
        "expired": lambda: signed((subject, key), days=-1),
        "for-servers": lambda: signed((subject, key), usage=ExtendedKeyUsageOID.SERVER_AUTH),
    }[kind]()
    with pytest.raises(urllib.error.HTTPError) as refusal:
        whoami(server, made, tmp_path)
    refusal.value.close()
    assert refusal.value.code == 401


def test_keys_are_for_their_owners_eyes(server: processes.Process) -> None:
    private = [server.folder / "admin.token", *(server.folder / "pki").glob("*.key")]
    assert {path.name for path in private} >= {"admin.token", "ca.key", "server.key", "sa.key"}
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
