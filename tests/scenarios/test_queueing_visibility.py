"""Who waits for queues, over HTTPS beside an API server: who asks is found out, and whether they may."""

import asyncio
import contextlib
import json
import pathlib
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import aiohttp
import pytest

from drachma import errors
from drachma.api import configmap, meta
from drachma.client import Client
from drachma.listening import addresses
from drachma.process import visibilityendpoint
from drachma.process.extensionaccess import Trust
from drachma.runtime import Surroundings
from drachma.server.access import certificates
from drachma.server.kinds.kueue import visibilitykinds
from drachma.server.wire import app

GROUP = "/apis/visibility.kueue.x-k8s.io"
PENDING = f"{GROUP}/v1beta2/clusterqueues/team/pendingworkloads"
NOW = datetime.now(UTC)


class _ApiServer:
    """Knows a token of ``bob``, and lets ``alice`` and ``bob`` see who waits; ``trust`` is its ConfigMap."""

    def __init__(self) -> None:
        self.trust: dict[str, str] | None = None
        self.is_down = False
        self.asked: list[Mapping[str, Any]] = []

    async def get(self, _: Any, name: str, *, namespace: str = "") -> configmap.ConfigMap:
        if self.trust is None:
            raise errors.ObjectNotFoundError({"message": f"configmaps {name} not found", "code": 404})
        return configmap.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace), data=self.trust)

    async def create_document(self, _: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.is_down:
            raise errors.UnreachableError("the API server does not answer")
        spec = document["spec"]
        if document["kind"] == "TokenReview":
            known = spec["token"] == "secret"
            return {"status": {"authenticated": known, "user": {"username": "bob", "groups": ["team"]}}}
        self.asked.append(spec)
        return {"status": {"allowed": spec["user"] in ("alice", "bob")}}


class _Extension(NamedTuple):
    """An endpoint that answers, its API server, and how to ask it."""

    url: str
    server: _ApiServer
    folder: pathlib.Path
    users: certificates.Files
    proxies: certificates.Files

    async def ask(
        self,
        path: str,
        *,
        certificate: str = "",
        by: certificates.Files | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Status and document; ``certificate`` is the name of one that ``by`` has signed, or else the users' own."""
        context = ssl.create_default_context(cafile=str(self.folder / "own" / "ca.crt"))
        if certificate:
            pair = self.folder / f"{certificate}.pem"
            pair.write_bytes(b"".join(certificates.make_client(by or self.users, user=certificate, now=NOW)))
            context.load_cert_chain(pair)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(self.url + path, headers=headers) as answer,
        ):
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text


@contextlib.asynccontextmanager
async def _extension(folder: pathlib.Path, *, trusts: bool = True) -> AsyncIterator[_Extension]:
    def files(name: str) -> certificates.Files:
        return certificates.ensure(folder / name, hosts=["127.0.0.1"], now=NOW)

    server, users, proxies = _ApiServer(), files("users"), files("proxies")
    if trusts:
        server.trust = {
            "client-ca-file": users.authority.read_text(),
            "requestheader-client-ca-file": proxies.authority.read_text(),
            "requestheader-allowed-names": '["aggregator"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
    observers = {"visibility.kueue.x-k8s.io/clusterqueues/pendingworkloads": _waiting}
    additions = app.Additions(kinds=visibilitykinds.kinds(), observers=observers)
    endpoint = visibilityendpoint.VisibilityEndpoint(addresses.Address("127.0.0.1", 0), files("own"))
    task = asyncio.create_task(endpoint.serve(additions, Surroundings(cast(Client, server))))
    made = _Extension(endpoint.address.url, server, folder, users, proxies)
    try:
        await _listening(made)
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _waiting(_: str, name: str, query: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    return [{"metadata": {"name": "train"}}] if name == "team" else None


async def _listening(extension: _Extension) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientConnectorError):
                if (await extension.ask("/readyz"))[0] == 200:
                    return
            await asyncio.sleep(0.01)


async def test_users_are_known_by_certificates_headers_of_proxies_and_tokens(tmp_path: pathlib.Path) -> None:
    async with _extension(tmp_path) as extension:
        status, document = await extension.ask(PENDING, certificate="alice")
        assert (status, document["kind"]) == (200, "PendingWorkloadsSummary")
        assert [each["metadata"]["name"] for each in document["items"]] == ["train"]
        assert extension.server.asked[-1]["resourceAttributes"] == {
            "verb": "get",
            "group": "visibility.kueue.x-k8s.io",
            "version": "v1beta2",
            "resource": "clusterqueues",
            "subresource": "pendingworkloads",
            "name": "team",
        }
        # Headers count from proxies only, and from those with the right name.
        proxied = {"X-Remote-User": "alice", "X-Remote-Group": "devs", "X-Remote-Extra-acme.com%2fProject": "x"}
        status, _ = await extension.ask(PENDING, certificate="aggregator", by=extension.proxies, headers=proxied)
        assert status == 200
        assert extension.server.asked[-1]["groups"] == ["devs", "system:authenticated"]
        assert extension.server.asked[-1]["extra"] == {"acme.com/project": ["x"]}
        assert (await extension.ask(PENDING, certificate="other", by=extension.proxies, headers=proxied))[0] == 401
        assert (await extension.ask(PENDING, certificate="aggregator", by=extension.proxies))[0] == 401
        status, refused = await extension.ask(PENDING, certificate="mallory", headers=proxied)
        assert (status, refused["reason"]) == (403, "Forbidden")
        assert 'User "mallory" cannot get resource "clusterqueues/pendingworkloads"' in refused["message"]

        assert (await extension.ask(PENDING, headers={"Authorization": "Bearer secret"}))[0] == 200
        assert (await extension.ask(PENDING, headers={"Authorization": "Bearer wrong"}))[0] == 401
        status, refused = await extension.ask(PENDING)
        assert (status, extension.server.asked[-1]["user"]) == (403, "system:anonymous")


async def test_it_answers_as_an_extension_of_an_api_server(tmp_path: pathlib.Path) -> None:
    async with _extension(tmp_path) as extension:
        masters = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}

        async def passed_on(path: str) -> tuple[int, Any]:
            return await extension.ask(path, certificate="aggregator", by=extension.proxies, headers=masters)

        _, groups = await passed_on("/apis")
        assert [each["name"] for each in groups["groups"]] == ["visibility.kueue.x-k8s.io"]
        for version in ("v1beta1", "v1beta2"):
            _, listed = await passed_on(f"{GROUP}/{version}")
            assert {each["name"] for each in listed["resources"]} >= {"clusterqueues/pendingworkloads"}
        assert (await passed_on("/openapi/v2"))[1]["swagger"] == "2.0"
        assert (await passed_on("/openapi/v3"))[1]["paths"]
        assert (await passed_on(f"{GROUP}/v1beta2/clusterqueues/none/pendingworkloads"))[0] == 404
        assert (await passed_on(f"{GROUP}/v1beta2/namespaces/a/localqueues/b/pendingworkloads"))[0] == 503
        assert (await passed_on("/apis/apps/v1/deployments"))[0] == 404
        assert (await extension.ask("/healthz")) == (200, "ok")
        # Those who may do everything need not be asked about.
        assert not extension.server.asked


async def test_without_certificates_of_clients_tokens_count_and_nobody_is_let_in_when_nobody_can_be_asked(
    tmp_path: pathlib.Path,
) -> None:
    async with _extension(tmp_path, trusts=False) as extension:
        # The listener asks nobody for a certificate, so alice is nobody in particular.
        assert (await extension.ask(PENDING, certificate="alice"))[0] == 403
        assert extension.server.asked[-1]["user"] == "system:anonymous"
        extension.server.is_down = True
        status, refused = await extension.ask(PENDING, headers={"Authorization": "Bearer secret"})
        assert (status, refused["reason"]) == (500, "InternalError")
        assert "the API server does not answer" in refused["message"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        pytest.param("requestheader-allowed-names", '{"a": 1}', id="no-list"),
        pytest.param("client-ca-file", "no certificate", id="no-certificate"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_key(key: str, text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"extension-apiserver-authentication: {key}: "):
        Trust.of({key: text})


def test_manifests_register_every_version() -> None:
    made = visibilityendpoint.manifests("queues.example.com", 8082, b"authority")
    assert made[0]["spec"] == {"type": "ExternalName", "externalName": "queues.example.com"}
    services = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "APIService"}
    assert list(services) == ["v1beta2.visibility.kueue.x-k8s.io", "v1beta1.visibility.kueue.x-k8s.io"]
    assert {spec["service"]["port"] for spec in services.values()} == {8082}
    assert [each["roleRef"]["name"] for each in made[3:]] == [
        "extension-apiserver-authentication-reader",
        "system:auth-delegator",
    ]


def test_endpoints_replace_the_name_for_aggregator_routing() -> None:
    service, endpoints, *_ = visibilityendpoint.manifests("fd00::1", 8082, b"authority", by_endpoints=True)
    assert service["spec"] == {"ports": [{"name": "https", "port": 8082, "targetPort": 8082}]}
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert (endpoints["addressType"], endpoints["endpoints"][0]["addresses"]) == ("IPv6", ["fd00::1"])
    with pytest.raises(errors.InvalidValueError, match=r"'queues\.example\.com': endpoints need an IP address"):
        visibilityendpoint.manifests("queues.example.com", 8082, b"authority", by_endpoints=True)
