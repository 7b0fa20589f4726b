"""The verdict without a cluster is the server's own, for every kind that it serves."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import gates
from drachma.server.kinds import builtin
from drachma.server.pipeline import verdict
from tests.unit.server import client

POD = client.pod("pod", namespace="default")
BAD_POD = {**POD, "spec": {"containers": [{"name": "Main"}], "restartPolicy": "Sometimes"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": {"app": "other"}}, "template": TEMPLATE},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job"},
    "spec": {"parallelism": -1, "template": {"spec": TEMPLATE["spec"]}},
}
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 2_000_000_000,
}
BETA_CLAIM = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c"},
    "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu"}]}},
}


def judge() -> verdict.Judge:
    return verdict.Judge(gates=gates.ALL, clock=client.Clock())


async def said(document: Any) -> verdict.Verdict:
    bench = judge()
    await bench.assume([document])
    return await bench.judge(document)


PATHS = {
    "Pod": client.PODS,
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims",
}


@pytest.mark.parametrize(
    ("document", "is_good"),
    [
        pytest.param(POD, True, id="pod"),
        pytest.param(BAD_POD, False, id="pod-with-bad-container"),
        pytest.param({**POD, "metadata": {"name": "a.b"}}, True, id="pod-whose-name-earns-a-warning"),
        pytest.param({**POD, "metadata": {"generateName": "x" * 80}}, True, id="generated-name-is-shortened"),
        pytest.param({**POD, "spec": {**POD["spec"], "x": 1}}, False, id="unknown-field"),
        pytest.param({**POD, "spec": {**POD["spec"], "containers": "x"}}, False, id="wrong-type"),
        pytest.param({**POD, "metadata": {}}, False, id="no-name"),
        pytest.param(DEPLOYMENT, False, id="deployment"),
        pytest.param(JOB, False, id="job"),
        pytest.param(PRIORITY, False, id="priority-class"),
        pytest.param({**PRIORITY, "value": 1}, True, id="good-priority-class"),
        pytest.param(BETA_CLAIM, True, id="deprecated-version"),
    ],
)
async def test_as_a_server_says(document: dict[str, Any], *, is_good: bool) -> None:
    server = await client.start()
    path = f"{PATHS[document['kind']]}?dryRun=All&fieldValidation=Strict"
    answer = await server.call("POST", path, document)
    ours = await said(document)
    assert (answer.code == 201, ours.refusal is None) == (is_good, is_good), answer.body
    assert ours.refusal == (None if is_good else answer.body)
    headers = [value for key, value in answer.headers if key.lower() == "warning"]
    assert [f'299 - "{warning}"' for warning in ours.warnings] == headers


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.key) for kind in builtin.KINDS if not kind.traits.is_question]
)
async def test_every_stored_kind_has_a_verdict(kind: Any) -> None:
    ours = await said(
        {"apiVersion": kind.api_version(kind.versions[0]), "kind": kind.kind, "metadata": {"name": "a/b"}}
    )
    assert ours.resource is kind
    assert ours.refusal is not None
    assert ours.refusal["code"] in (400, 422), ours.refusal


async def test_generated_names_show_that_they_are() -> None:
    ours = await said({**POD, "metadata": {"generateName": "web-"}})
    assert (ours.name, ours.refusal) == ("web-xxxxx", None)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"priorityClassName": "high"}, id="priority-class"),
        pytest.param({"priority": 5}, id="priority"),
        pytest.param({"runtimeClassName": "kata"}, id="runtime-class"),
    ],
)
async def test_what_a_cluster_decides_is_not_judged(spec: dict[str, Any]) -> None:
    elsewhere = {"name": "pod", "namespace": "elsewhere"}
    ours = await said({**POD, "metadata": elsewhere, "spec": {**POD["spec"], **spec}})
    assert ours.refusal is None


async def test_a_namespace_that_is_there_twice_is_judged_like_one() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}}
    bench = judge()
    await bench.assume([namespace, namespace])
    assert [(await bench.judge(namespace)).refusal for _ in range(2)] == [None, None]


async def test_an_unknown_kind_is_told_what_is_served() -> None:
    with pytest.raises(errors.DecodeError, match=r"unknown kind Widget in example.com/v1; served are .*Pod \(v1\)"):
        await said({"apiVersion": "example.com/v1", "kind": "Widget"})
