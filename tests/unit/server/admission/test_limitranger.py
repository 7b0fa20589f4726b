"""Limit ranges: their defaults, and what they mean for pods."""

from typing import Any

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

RANGES = "/api/v1/namespaces/default/limitranges"
NOTE = "kubernetes.io/limit-ranger"


async def limits(server: Client, *items: dict[str, Any], name: str = "l") -> Any:
    answer = await server.call("POST", RANGES, {"metadata": {"name": name}, "spec": {"limits": items}})
    assert answer.code == 201, answer.body
    return answer.body["spec"]["limits"]


def a_pod(name: str = "p", *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    listed = [{"name": f"c{number}", "image": "x", **each} for number, each in enumerate(containers or ({},))]
    return {**client.pod(name), "spec": {"containers": listed, **spec}}


async def test_a_limit_range_completes_itself(server: Client) -> None:
    stored = await limits(
        server,
        {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "1"}, "default": {"cpu": "1500m"}},
        {"type": "Pod", "max": {"cpu": "4"}},
    )
    assert stored == [
        {
            "type": "Container",
            "max": {"cpu": "2", "memory": "1Gi"},
            "min": {"cpu": "1"},
            "default": {"cpu": "1500m", "memory": "1Gi"},
            "defaultRequest": {"cpu": "1500m", "memory": "1Gi"},
        },
        {"type": "Pod", "max": {"cpu": "4"}},
    ]


async def test_one_without_a_name_gets_one(server: Client) -> None:
    answer = await server.call("POST", RANGES, {"spec": {"limits": []}})
    assert answer.code == 201
    assert len(answer.body["metadata"]["name"]) == 36


async def test_an_update_of_nothing_makes_one(server: Client) -> None:
    body = {"metadata": {"name": "new"}, "spec": {"limits": []}}
    assert (await server.call("PUT", f"{RANGES}/new", body)).code == 201


async def test_containers_get_what_they_do_not_state(server: Client) -> None:
    await limits(
        server, {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
    )
    stated = {"resources": {"requests": {"memory": "1Mi"}, "limits": {"cpu": "2", "memory": "2Mi"}}}
    answer = await server.call("POST", PODS, a_pod("p", {}, stated, initContainers=[{"name": "i", "image": "x"}]))
    assert answer.code == 201
    defaults = {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}
    spec = answer.body["spec"]
    assert [each["resources"] for each in spec["containers"]] == [
        defaults,
        # A limit is a request as well where nothing else is said, before anybody looks at defaults.
        {"limits": {"cpu": "2", "memory": "2Mi"}, "requests": {"cpu": "2", "memory": "1Mi"}},
    ]
    assert spec["initContainers"][0]["resources"] == defaults
    assert answer.body["metadata"]["annotations"] == {
        NOTE: "LimitRanger plugin set: cpu, memory request for container c0; cpu, memory limit for container c0; "
        "cpu, memory request for init container i; cpu, memory limit for init container i"
    }
    owned = str(answer.body["metadata"]["managedFields"])
    assert NOTE not in owned
    assert "f:requests" in owned


async def test_nothing_is_noted_where_nothing_is_set(server: Client) -> None:
    await limits(server, {"type": "Container", "default": {"cpu": "1"}})
    answer = await server.call("POST", PODS, a_pod("p", {"resources": {"limits": {"cpu": "2"}}}))
    assert "annotations" not in answer.body["metadata"]


async def test_one_range_after_the_other(server: Client) -> None:
    await limits(server, {"type": "Container", "default": {"cpu": "1"}}, name="a")
    await limits(server, {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}, name="b")
    answer = await server.call("POST", PODS, a_pod())
    assert answer.body["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert answer.body["metadata"]["annotations"][NOTE] == (
        "LimitRanger plugin set: memory request for container c0; memory limit for container c0"
    )


async def test_what_is_out_of_bounds_is_refused(server: Client) -> None:
    await limits(server, {"type": "Container", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1500m"}})
    much = {"resources": {"limits": {"cpu": "2"}}}
    answer = await server.call("POST", PODS, a_pod("p", much))
    assert answer.code == 403
    assert answer.body["message"] == (
        'pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, '
        "maximum cpu usage per Pod is 1500m, but limit is 2]"
    )
    two = await server.call("POST", PODS, a_pod("p", much, much))
    assert two.body["message"].count("per Container") == 1
    both = await server.call("POST", PODS, a_pod("p", {}, {}))
    assert both.body["message"] == 'pods "p" is forbidden: maximum cpu usage per Pod is 1500m, but limit is 2'


async def test_limits_are_for_new_pods_of_their_namespace(server: Client) -> None:
    await server.call("POST", PODS, a_pod("old"))
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    await limits(server, {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "1"}})
    answer = await server.call(
        "PATCH", f"{PODS}/old", {"metadata": {"labels": {"a": "b"}}}, content_type="application/merge-patch+json"
    )
    assert answer.code == 200
    elsewhere = await server.call("POST", PODS.replace("default", "other"), a_pod("p"))
    assert elsewhere.body["spec"]["containers"][0]["resources"] == {}


async def test_volume_claims_have_bounds(server: Client) -> None:
    await limits(server, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    answers = []
    for size in ("512Mi", "1Gi", "3Gi"):
        resources = {"requests": {"storage": size}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
        answers.append(await server.call("POST", path, {"metadata": {"name": "v"}, "spec": spec}))
    assert [answer.code for answer in answers] == [403, 201, 403]
    assert answers[2].body["message"] == (
        'persistentvolumeclaims "v" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, '
        "but request is 3Gi"
    )
