"""The account of a pod: it must be there, its token is mounted, and its secrets are the pod's."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Client]:
    started = await client.start(disabled_plugins=())
    yield started
    await started.store.close()


async def account(server: Client, name: str = "app", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": more.pop("annotations", {})}
    answer = await server.call("POST", ACCOUNTS, {"metadata": metadata, **more})
    assert answer.code == 201
    return dict(answer.body)


def pod(name: str = "p", *, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    made = client.pod(name, annotations=annotations or {})
    made["spec"] |= {"serviceAccountName": "app", **spec}
    return made


async def test_a_pod_gets_a_token_in_all_its_containers(cluster: Client) -> None:
    await account(cluster)
    given = pod(initContainers=[{"name": "first", "image": "i"}])
    spec = (await cluster.call("POST", PODS, given)).body["spec"]
    (volume,) = spec["volumes"]
    assert volume == {
        "name": volume["name"],
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [
                            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                        ]
                    }
                },
            ],
            "defaultMode": 420,
        },
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNT}
    assert [each["volumeMounts"] for each in (*spec["initContainers"], *spec["containers"])] == [[mount], [mount]]


async def test_like_pods_are_alike(cluster: Client) -> None:
    await account(cluster)
    specs = [(await cluster.call("POST", PODS, pod(name))).body["spec"] for name in ("p", "q")]
    assert specs[0] == specs[1]


@pytest.mark.parametrize(
    ("more", "spec"),
    [
        pytest.param({"automountServiceAccountToken": False}, {}, id="the-account-says-no"),
        pytest.param({}, {"automountServiceAccountToken": False}, id="the-pod-says-no"),
        pytest.param(
            {},
            {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [
                    {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": MOUNT}]},
                ],
            },
            id="something-else-is-in-its-place",
        ),
    ],
)
async def test_a_token_that_is_not_wanted(cluster: Client, more: dict[str, Any], spec: dict[str, Any]) -> None:
    await account(cluster, **more)
    volumes = (await cluster.call("POST", PODS, pod(**spec))).body["spec"].get("volumes", [])
    assert [each["name"] for each in volumes] == [each["name"] for each in spec.get("volumes", [])]


async def test_the_pods_wish_counts_more(cluster: Client) -> None:
    await account(cluster, automountServiceAccountToken=False)
    spec = (await cluster.call("POST", PODS, pod(automountServiceAccountToken=True))).body["spec"]
    assert len(spec["volumes"]) == 1


async def test_pull_secrets_are_the_accounts_unless_the_pod_has_some(cluster: Client) -> None:
    await account(cluster, imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    given = (await cluster.call("POST", PODS, pod())).body["spec"]["imagePullSecrets"]
    assert given == [{"name": "a"}, {"name": "b"}]
    own = (await cluster.call("POST", PODS, pod("q", imagePullSecrets=[{"name": "c"}]))).body["spec"]
    assert own["imagePullSecrets"] == [{"name": "c"}]


async def test_an_account_must_be_there(cluster: Client) -> None:
    answer = await cluster.call("POST", PODS, pod())
    assert answer.code == 403
    assert answer.body["message"] == (
        'pods "p" is forbidden: error looking up service account default/app: serviceaccount "app" not found'
    )


async def test_the_default_account_may_come_a_moment_later(cluster: Client) -> None:
    waiting = asyncio.create_task(cluster.call("POST", PODS, client.pod()))
    await asyncio.sleep(0)
    await account(cluster, "default")
    answer = await waiting
    assert (answer.code, answer.body["spec"]["serviceAccountName"]) == (201, "default")


SECRETS = [
    pytest.param(
        {"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}, 'volume with secret.secretName="x"', id="volume"
    ),
    pytest.param(
        {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}],
                }
            ]
        },
        'container c with envVar E referencing secret.secretName="x"',
        id="variable",
    ),
    pytest.param(
        {"initContainers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
        'init container c with envFrom referencing secret.secretName="x"',
        id="variables",
    ),
    pytest.param({"imagePullSecrets": [{"name": "x"}]}, 'imagePullSecrets[0].name="x"', id="pull-secret"),
]


@pytest.mark.parametrize(("spec", "message"), SECRETS)
async def test_an_account_can_hold_its_pods_to_its_secrets(cluster: Client, spec: dict[str, Any], message: str) -> None:
    await account(cluster, annotations={"kubernetes.io/enforce-mountable-secrets": "true"}, secrets=[{"name": "own"}])
    answer = await cluster.call("POST", PODS, pod(**spec))
    assert answer.code == 403
    assert f"{message} is not allowed because service account app does not reference that" in answer.body["message"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"serviceAccountName": "app"}, "a mirror pod may not reference service accounts", id="account"),
        pytest.param({"imagePullSecrets": [{"name": "x"}]}, "a mirror pod may not reference secrets", id="pull-secret"),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
            id="token",
        ),
    ],
)
async def test_a_mirror_pod_is_nobody(cluster: Client, spec: dict[str, Any], message: str) -> None:
    given = pod(annotations={"kubernetes.io/config.mirror": "m"}, **{"serviceAccountName": "", "nodeName": "n", **spec})
    answer = await cluster.call("POST", PODS, given)
    assert answer.code == 403
    assert message in answer.body["message"]
