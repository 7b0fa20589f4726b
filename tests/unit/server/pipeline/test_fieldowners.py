"""Field ownership: clients own the fields that they wrote, and none that the server added or restored."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def owned(answer: dict[str, Any], manager: str) -> Any:
    """The fields of a manager; None where it owns nothing."""
    entries = answer["metadata"].get("managedFields") or []
    return next((entry["fieldsV1"] for entry in entries if entry["manager"] == manager), None)


async def test_what_admission_and_the_server_add_is_nobodys(server: Client) -> None:
    pod = (await server.call("POST", f"{PODS}?fieldManager=m", client.pod())).body
    assert {"f:containers", "f:restartPolicy"} <= owned(pod, "m")["f:spec"].keys()
    assert owned(pod, "m")["f:spec"].keys().isdisjoint({"f:priority", "f:tolerations", "f:serviceAccountName"})
    template = {"spec": {**client.pod()["spec"], "restartPolicy": "Never"}}
    job = (
        await server.call("POST", f"{JOBS}?fieldManager=m", {"metadata": {"name": "j"}, "spec": {"template": template}})
    ).body
    assert job["spec"]["selector"]
    assert "f:selector" not in owned(job, "m")["f:spec"]
    assert owned(job, "m").keys() == {"f:spec"}


async def test_what_an_update_cannot_change_is_owned_by_who_tried(server: Client) -> None:
    """Upstream's: ownership is that of what was written, before the stored value is put back."""
    await server.call("POST", MAPS, {"metadata": {"name": "c", "finalizers": ["example.com/a"]}})
    gone = (await server.call("DELETE", f"{MAPS}/c")).body["metadata"]
    patch = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
    answer = await server.call("PATCH", f"{MAPS}/c?fieldManager=m", patch, content_type=MERGE)
    assert answer.body["metadata"]["deletionTimestamp"] == gone["deletionTimestamp"]
    assert owned(answer.body, "m") == {"f:metadata": {"f:deletionTimestamp": {}}}
    assert answer.body["metadata"]["resourceVersion"] != gone["resourceVersion"]


@pytest.mark.parametrize(
    ("path", "patch"),
    [
        pytest.param(f"{PODS}/p", {"status": {"message": "m"}}, id="status-through-the-object"),
        pytest.param(f"{PODS}/p/status", {"spec": {"nodeName": "n"}}, id="spec-through-the-status"),
        pytest.param(f"{PODS}/p", {"metadata": {"generation": 7, "creationTimestamp": None}}, id="system-fields"),
    ],
)
async def test_what_is_reset_is_neither_owned_nor_written(server: Client, path: str, patch: dict[str, Any]) -> None:
    pod = (await server.call("POST", PODS, client.pod())).body
    server.clock.advance(60)
    answer = await server.call("PATCH", f"{path}?fieldManager=m", patch, content_type=MERGE)
    assert answer.code == 200
    assert owned(answer.body, "m") is None
    assert answer.body["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]


async def test_an_apply_of_what_is_there_changes_no_time(server: Client) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    media_type = "application/apply-patch+yaml"
    first = await server.call("PATCH", f"{MAPS}/c?fieldManager=m", body, content_type=media_type)
    server.clock.advance(60)
    second = await server.call("PATCH", f"{MAPS}/c?fieldManager=m", body, content_type=media_type)
    assert second.body == first.body
