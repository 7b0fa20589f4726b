"""Pending workloads of queues over HTTP, in the form of Kueue's visibility API."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from drachma import errors
from drachma.server.kinds.kueue import visibilitykinds
from drachma.server.wire import app
from tests.unit.server import client

_GROUP = "/apis/visibility.kueue.x-k8s.io"
_LOCAL = f"{_GROUP}/v1beta2/namespaces/ns/localqueues"


def _known(namespace: str, name: str, query: Mapping[str, Sequence[str]]) -> Sequence[Mapping[str, Any]] | None:
    if "limit" in query:
        raise errors.InvalidValueError("limit: cannot be")
    return [{"localQueueName": f"{namespace}/{name}"}] if name == "known" else None


@pytest.fixture
async def api() -> client.Client:
    observers = {"visibility.kueue.x-k8s.io/localqueues/pendingworkloads": _known}
    return await client.start(additions=app.Additions(kinds=visibilitykinds.kinds(), observers=observers))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_a_summary(api: client.Client, version: str) -> None:
    answer = await api.call("GET", f"{_GROUP}/{version}/namespaces/ns/localqueues/known/pendingworkloads")
    assert (answer.code, answer.body) == (
        200,
        {
            "kind": "PendingWorkloadsSummary",
            "apiVersion": f"visibility.kueue.x-k8s.io/{version}",
            "metadata": {},
            "items": [{"localQueueName": "ns/known"}],
        },
    )


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        pytest.param(
            f"{_LOCAL}/unknown/pendingworkloads",
            404,
            'localqueue.visibility.kueue.x-k8s.io "unknown" not found',
            id="unknown",
        ),
        pytest.param(f"{_LOCAL}/known/pendingworkloads?limit=x", 400, "limit: cannot be", id="bad-parameter"),
        pytest.param(
            f"{_GROUP}/v1beta2/clusterqueues/any/pendingworkloads",
            503,
            "no component of this process observes clusterqueues.visibility.kueue.x-k8s.io",
            id="nobody-knows",
        ),
        pytest.param(
            f"{_LOCAL}/known", 405, "the server does not allow this method on the requested resource", id="the-queue"
        ),
    ],
)
async def test_refusals(api: client.Client, path: str, code: int, message: str) -> None:
    answer = await api.call("GET", path)
    assert (answer.code, answer.body["message"]) == (code, message)


async def test_discovery(api: client.Client) -> None:
    answer = await api.call("GET", f"{_GROUP}/v1beta2")
    shown = [(each["name"], each["kind"], each["verbs"]) for each in answer.body["resources"]]
    assert shown == [
        ("clusterqueues", "ClusterQueue", []),
        ("clusterqueues/pendingworkloads", "PendingWorkloadsSummary", ["get"]),
        ("localqueues", "LocalQueue", []),
        ("localqueues/pendingworkloads", "PendingWorkloadsSummary", ["get"]),
    ]
