"""Getting in: the HTTP client with kubeconfigs against a server with TLS."""

import asyncio
import base64
import json
import pathlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from drachma import errors
from drachma.api import namespace
from drachma.client import http
from drachma.runtime import clock
from drachma.server.access import certificates
from tests import patience
from tests.scenarios import clusters


@pytest.fixture
async def cluster(tmp_path: pathlib.Path) -> AsyncIterator[clusters.SecureCluster]:
    async with asyncio.timeout(patience.SECONDS), clusters.secure_cluster(tmp_path) as made:
        yield made


async def knock(content: str, folder: pathlib.Path) -> str:
    """Reads something by a kubeconfig."""
    path = folder / "config"
    path.write_text(content)
    async with http.HttpClient(http.find_access(path), clock=clock.SystemClock()) as client:
        return (await client.get(namespace.Namespace, "default")).metadata.name


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_by_token(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    assert await knock(cluster.kubeconfig(), tmp_path) == "default"


async def test_the_environment_names_the_file(
    cluster: clusters.SecureCluster, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "elsewhere"
    path.write_text(cluster.kubeconfig())
    monkeypatch.setenv("KUBECONFIG", str(path))
    async with http.HttpClient(http.find_access(), clock=clock.SystemClock()) as client:
        assert len((await client.list(namespace.Namespace)).items) == 4


async def test_by_certificate(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    certificate, key = certificates.make_client(cluster.files, user="jane", now=datetime.now(UTC))
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    assert await knock(cluster.kubeconfig(user=user), tmp_path) == "default"


async def test_by_plugin(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    version = "client.authentication.k8s.io/v1"
    credential = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": clusters.TOKEN}}
    plugin = {"command": "echo", "args": [json.dumps(credential)], "apiVersion": version}
    assert await knock(cluster.kubeconfig(user={"exec": plugin}), tmp_path) == "default"


async def test_a_plugin_gives_certificates(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    certificate, key = certificates.make_client(cluster.files, user="jane", now=datetime.now(UTC))
    answer = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    whole = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": answer}
    (tmp_path / "credential.json").write_text(json.dumps(whole))
    plugin = {"command": "cat", "args": [str(tmp_path / "credential.json")], "apiVersion": whole["apiVersion"]}
    assert await knock(cluster.kubeconfig(user={"exec": plugin}), tmp_path) == "default"


async def test_without_verification(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    assert await knock(cluster.kubeconfig(cluster={"insecure-skip-tls-verify": True}), tmp_path) == "default"


async def test_another_name_of_the_server(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    authority = {"certificate-authority": str(cluster.files.authority)}
    good = cluster.kubeconfig(cluster={**authority, "tls-server-name": "kubernetes"})
    assert await knock(good, tmp_path) == "default"
    bad = cluster.kubeconfig(cluster={**authority, "tls-server-name": "another"})
    with pytest.raises(errors.UnreachableError, match="Hostname mismatch"):
        await knock(bad, tmp_path)


async def test_an_authority_that_did_not_sign(cluster: clusters.SecureCluster, tmp_path: pathlib.Path) -> None:
    other = certificates.ensure(tmp_path / "other", hosts=["x"], now=datetime.now(UTC))
    content = cluster.kubeconfig(cluster={"certificate-authority": str(other.authority)})
    with pytest.raises(errors.UnreachableError, match="certificate verify failed"):
        await knock(content, tmp_path)


@pytest.mark.parametrize(
    "user",
    [pytest.param({"token": "guess"}, id="wrong-token"), pytest.param({}, id="nobody")],
)
async def test_not_let_in(cluster: clusters.SecureCluster, tmp_path: pathlib.Path, user: dict[str, str]) -> None:
    with pytest.raises(errors.UnauthorizedError, match="Unauthorized"):
        await knock(cluster.kubeconfig(user=user), tmp_path)


@pytest.mark.parametrize(
    ("field", "want_message"),
    [
        pytest.param("certificate-authority-data", "certificate authority: cannot be used", id="authority"),
        pytest.param("client-certificate-data", "client certificate: cannot be used", id="certificate"),
    ],
)
async def test_certificates_that_are_none(
    cluster: clusters.SecureCluster, tmp_path: pathlib.Path, field: str, want_message: str
) -> None:
    broken = {field: encoded(b"no certificate")}
    if field.startswith("client"):
        content = cluster.kubeconfig(user={**broken, "client-key-data": encoded(b"no key")})
    else:
        content = cluster.kubeconfig(cluster=broken)
    with pytest.raises(errors.AccessError) as caught:
        await knock(content, tmp_path)
    assert str(caught.value).startswith(f"kubeconfig {tmp_path / 'config'}, context 'drachma': {want_message}")
