"""The public way to a client: by a kubeconfig file."""

import pathlib

import pytest

from drachma import api, client, errors
from tests.unit.client import fakeserver

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: URL}}]
users: [{name: me, user: {token: secret}}]
"""
PODS = {
    "kind": "PodList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "7"},
    "items": [{"metadata": {"name": "train", "namespace": "default"}}],
}


async def test_a_stranger_lists_pods(tmp_path: pathlib.Path) -> None:
    async with fakeserver.serving(fakeserver.Answer(body=PODS)) as server:
        file = tmp_path / "kubeconfig"
        file.write_text(KUBECONFIG.replace("URL", server.url))
        async with client.connect(file) as cluster:
            pods = await cluster.list(api.Pod, client.Selection(namespace="default"))
    assert [pod.metadata.name for pod in pods.items] == ["train"]
    assert [(asked.line, asked.headers["Authorization"]) for asked in server.asked] == [
        ("GET /api/v1/namespaces/default/pods", "Bearer secret")
    ]


def test_a_kubeconfig_that_does_not_exist_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.AccessError, match="absent"):
        client.connect(tmp_path / "absent")
