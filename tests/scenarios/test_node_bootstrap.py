"""A kubelet's way into a cluster: by a token that is good for a day it gets a certificate, and is a node with it."""

import base64
import json
import pathlib
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization

from tests import certificaterequests
from tests.scenarios import processes, wire

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
USAGES = ["digital signature", "client auth"]


def request(name: str, node: str) -> dict[str, Any]:
    spec = {
        "request": certificaterequests.encoded(f"system:node:{node}", "system:nodes"),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": USAGES,
    }
    return {"metadata": {"name": name}, "spec": spec}


def issued(connection: wire.Wire, name: str) -> bytes:
    """The certificate once there is one."""
    query = f"watch=1&fieldSelector=metadata.name%3D{name}"
    for line in connection.open("GET", f"{REQUESTS}?{query}"):
        status = json.loads(line)["object"].get("status") or {}
        if status.get("certificate"):
            connection.close()
            return base64.b64decode(status["certificate"])
    raise AssertionError(f"request {name} was not signed")


def test_a_token_becomes_a_node_and_a_node_renews_itself(tmp_path: pathlib.Path) -> None:
    way_in = tmp_path / "bootstrap.kubeconfig"
    options = ("--bootstrap-kubeconfig-out", str(way_in))
    key = tmp_path / "node.key"
    key.write_bytes(
        certificaterequests.KEY.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    with processes.running(tmp_path / "data", command_name="up", options=options) as server:
        assert way_in.stat().st_mode & 0o777 == 0o600
        token = yaml.safe_load(way_in.read_text())["users"][0]["user"]["token"]
        with wire.Wire(server, token=token) as newcomer:
            assert newcomer.call("GET", "/api/v1/nodes").code == 403
            assert newcomer.call("POST", REQUESTS, request("first", "n1")).code == 201
            first = issued(newcomer, "first")
        certificate = tmp_path / "node.crt"
        certificate.write_bytes(first)
        with wire.Wire(server, token="", certificate=(str(certificate), str(key))) as node:
            made = node.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
            assert made.code == 201, made.body
            assert node.call("POST", "/api/v1/nodes", {"metadata": {"name": "n2"}}).code == 403
            assert node.call("POST", REQUESTS, request("next", "n1")).code == 201
            issued(node, "next")
        with wire.Wire(server) as admin:
            (condition,) = admin.call("GET", f"{REQUESTS}/next").body["status"]["conditions"]
            assert condition["message"] == ("Auto approving self kubelet client certificate after SubjectAccessReview.")
