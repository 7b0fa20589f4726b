"""A user who may proxy to nodes, and a node that leads there to the API server itself."""

import datetime as dt
import http.client
import json
import pathlib
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from drachma.server.access import certificates
from tests.scenarios import processes

ROLES = "/apis/rbac.authorization.k8s.io/v1"


class Person:
    """A user of a server, by a token or by nothing but a certificate."""

    def __init__(
        self, server: processes.Process, token: str = "", key_pair: tuple[pathlib.Path, pathlib.Path] | None = None
    ) -> None:
        self._place = urllib.parse.urlsplit(server.url)
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._context = ssl.create_default_context(cafile=str(server.authority))
        if key_pair is not None:
            self._context.load_cert_chain(*key_pair)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """The code and the text of an answer."""
        place = self._place
        connection = http.client.HTTPSConnection(str(place.hostname), place.port, context=self._context, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {**self._headers, "content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "tokens").write_text("bobs-token,bob,1\n")
    # What an earlier version has left: a certificate of a master.
    files = certificates.ensure(folder / "data" / "pki", hosts=["127.0.0.1"], now=dt.datetime.now(dt.UTC))
    certificate, key = certificates.make_client(
        files, user=certificates.KUBELET_CLIENT, groups=["system:masters"], now=dt.datetime.now(dt.UTC)
    )
    for name, content in (("crt", certificate), ("key", key)):
        (folder / f"old.{name}").write_bytes(content)
        (folder / "data" / "pki" / f"apiserver-kubelet-client.{name}").write_bytes(content)
    options = ("--nodes", "1", "--token-auth-file", str(folder / "tokens"))
    with processes.running(folder / "data", command_name="up", options=options) as started:
        admin = Person(started, started.token)
        rules = [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["*"]}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "proxy"}
        subjects = [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]
        assert admin.call("POST", f"{ROLES}/clusterroles", {"metadata": {"name": "proxy"}, "rules": rules})[0] == 201
        binding = {"metadata": {"name": "proxy"}, "roleRef": role, "subjects": subjects}
        assert admin.call("POST", f"{ROLES}/clusterrolebindings", binding)[0] == 201
        yield started


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"])
def test_a_node_that_leads_to_the_api_server(server: processes.Process, address: str) -> None:
    admin, bob = Person(server, server.token), Person(server, "bobs-token")
    port = urllib.parse.urlsplit(server.url).port
    reached = {
        "addresses": [{"type": "Hostname", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    assert admin.call("POST", "/api/v1/nodes", {"metadata": {"name": "evil"}, "status": reached})[0] == 201
    try:
        for path in ("api/v1/secrets", "healthz%20HTTP/1.1%0d%0ahost:%20x%0d%0a%0d%0aGET%20/api/v1/secrets"):
            code, answer = bob.call("GET", f"/api/v1/nodes/evil/proxy/{path}")
            assert (code, "address not allowed: node evil" in answer) == (400, True), answer
    finally:
        assert admin.call("DELETE", "/api/v1/nodes/evil")[0] == 200


def test_a_node_of_the_same_process_is_reached(server: processes.Process) -> None:
    assert Person(server, "bobs-token").call("GET", "/api/v1/nodes/node-0/proxy/healthz") == (200, "ok")


def test_another_port_of_its_machine_is_not(server: processes.Process) -> None:
    port = urllib.parse.urlsplit(server.url).port
    code, answer = Person(server, "bobs-token").call("GET", f"/api/v1/nodes/https:node-0:{port}/proxy/api/v1/secrets")
    assert code == 400
    assert "address not allowed: node node-0" in answer


def test_the_certificate_for_nodes_is_of_no_group_and_no_user_of_the_api_server(server: processes.Process) -> None:
    pki = server.folder / "pki"
    own = pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key"
    subject = x509.load_pem_x509_certificate(own[0].read_bytes()).subject
    assert [each.value for each in subject] == [certificates.KUBELET_CLIENT]
    assert not subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    old = server.folder.parent / "old.crt", server.folder.parent / "old.key"
    for pair in (own, old):
        for path in ("/api/v1/secrets", "/api/v1/nodes", "/healthz"):
            assert Person(server, key_pair=pair).call("GET", path)[0] == 401


@pytest.mark.parametrize(
    ("resource", "subresource", "verb", "want"),
    [
        pytest.param("nodes", "proxy", "create", True, id="streams"),
        pytest.param("nodes", "stats", "get", True, id="figures"),
        pytest.param("secrets", "", "get", False, id="secrets"),
        pytest.param("pods", "", "list", False, id="pods"),
    ],
)
def test_what_nodes_find_that_the_api_server_may(
    server: processes.Process, resource: str, subresource: str, verb: str, want: bool
) -> None:
    attributes = {"resource": resource, "subresource": subresource, "verb": verb}
    spec = {"user": certificates.KUBELET_CLIENT, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    code, answer = Person(server, server.token).call("POST", reviews, {"spec": spec})
    assert (code, json.loads(answer)["status"]["allowed"]) == (201, want)
