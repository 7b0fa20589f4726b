"""Rules of the REST wire that no single verb owns: media types, names that are taken, nulls and managers."""

from typing import Any

import pytest

from drachma.server.calls.call import BODY_LIMIT
from tests.unit.server import client, people
from tests.unit.server.client import CLAIMS, Client

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        pytest.param(
            f"{CLASSES}/a",
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
            id="object",
        ),
        pytest.param(
            CLASSES,
            "application/*",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch",
            id="list",
        ),
        pytest.param(
            "/version",
            "application/yaml",
            "406: Not Acceptable\n\nAvailable representations: application/json",
            id="version-is-json",
        ),
    ],
)
async def test_media_types_that_no_route_has(server: Client, path: str, accept: str, message: str) -> None:
    answer = await server.call("GET", path, headers={"accept": accept})
    if answer.header("content-type") == "application/yaml":
        assert message.partition("\n")[0] in answer.body
        return
    assert (answer.code, answer.body["message"], answer.body["details"]) == (406, message, {})


async def test_forms_that_are_not_known_are_refused_by_the_handler(server: Client) -> None:
    answer = await server.call("GET", CLASSES, headers={"accept": "application/json;as=Frame;g=meta.k8s.io;v=v1"})
    assert answer.body["message"].startswith("only the following media types are accepted: application/json, ")
    assert "details" not in answer.body


async def test_refusals_are_never_tables(server: Client) -> None:
    accept = "application/yaml;as=Table;v=v1;g=meta.k8s.io"
    answer = await server.call("GET", f"{CLASSES}/none", headers={"accept": accept})
    assert (answer.code, answer.body["kind"]) == (404, "Status")


async def test_refused_paths_speak_yaml_too(server: Client) -> None:
    raw = await server.raw("GET", "/apis/resource.k8s.io/v1/nopes", b"", headers={"accept": "application/yaml"})
    assert raw.data.startswith(b"apiVersion: v1\ncode: 404\n")


async def test_options_of_an_update_come_before_its_media_type(server: Client) -> None:
    answer = await server.call("PUT", f"{CLASSES}/a?dryRun=x", {}, content_type="text/plain")
    assert answer.code == 422
    assert (await server.call("POST", f"{CLASSES}?dryRun=x", {}, content_type="text/plain")).code == 415


async def test_texts_that_look_like_something_else_are_quoted_twice(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a") | {"metadata": {"name": "a", "labels": {"l": "1", "m": "y"}}})
    raw = await server.raw("GET", f"{CLAIMS}/a", b"", headers={"accept": "application/yaml"})
    assert b'    l: "1"\n    m: "y"\n' in raw.data


async def test_a_taken_name_beside_a_prefix_counts_as_generated(server: Client) -> None:
    body = client.claim("a") | {"metadata": {"name": "a", "generateName": "x-"}}
    assert (await server.call("POST", CLAIMS, body)).code == 201
    answer = await server.call("POST", CLAIMS, body)
    assert answer.body["message"].endswith(
        "already exists, the server was not able to generate a unique name for the object"
    )
    assert (answer.body["details"]["retryAfterSeconds"], answer.header("retry-after")) == (1, "1")


async def test_a_namespace_that_goes_away_names_what_it_refuses(server: Client) -> None:
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await server.call("DELETE", "/api/v1/namespaces/n")
    answer = await server.call("POST", CLAIMS.replace("default", "n"), {"metadata": {"name": "late"}})
    assert answer.body["message"].startswith('resourceclaims.resource.k8s.io "late" is forbidden: ')
    assert answer.body["details"]["name"] == "late"


async def test_nobody_owns_the_finalizers_of_a_new_namespace(server: Client) -> None:
    made = await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    assert "f:spec" not in made.body["metadata"]["managedFields"][0]["fieldsV1"]


async def test_nobody_owns_requests_that_are_not_there(server: Client) -> None:
    made = await server.call("POST", CLAIMS, {"metadata": {"name": "a"}})
    assert made.body["spec"] == {"devices": {"requests": None}}
    assert "managedFields" not in made.body["metadata"]


@pytest.mark.parametrize(
    "labels", [pytest.param({"a": None}, id="null"), pytest.param({"a": ""}, id="the-same-as-empty")]
)
async def test_a_null_in_a_map_is_an_empty_text(server: Client, labels: dict[str, Any]) -> None:
    made = await server.call("POST", CLAIMS, client.claim("a") | {"metadata": {"name": "a", "labels": labels}})
    assert made.body["metadata"]["labels"] == {"a": ""}
    fields = made.body["metadata"]["managedFields"][0]["fieldsV1"]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}


async def test_a_null_in_a_list_is_a_zero(server: Client) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [None]}}}
    answer = await server.call("POST", CLAIMS, body)
    assert answer.code == 422
    assert {cause["field"] for cause in answer.body["details"]["causes"]} >= {"spec.devices.requests[0].name"}


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([{"manager": "x"}], id="no-operation"),
        pytest.param([{"manager": "x", "operation": "Shove", "apiVersion": "v1"}], id="unknown-operation"),
        pytest.param([{"operation": "Update", "apiVersion": "v1", "fieldsType": "Bad"}], id="unknown-type"),
        pytest.param([None, None], id="nulls"),
    ],
)
async def test_managers_that_make_no_sense_are_ignored(server: Client, sent: Any) -> None:
    body = client.claim("a") | {"metadata": {"name": "a", "managedFields": sent}}
    made = await server.call("POST", CLAIMS, body)
    assert made.code == 201
    assert [entry["manager"] for entry in made.body["metadata"]["managedFields"]] == ["unknown"]
    changed = await server.call("PUT", f"{CLAIMS}/a", body)
    assert changed.body["metadata"]["managedFields"] == made.body["metadata"]["managedFields"]


@pytest.mark.parametrize("sent", [pytest.param([], id="none"), pytest.param([{}], id="an-empty-one")])
async def test_no_managers_reset_ownership(server: Client, sent: Any) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    patched = await server.call("PATCH", f"{CLAIMS}/a", {"metadata": {"managedFields": sent}}, content_type=MERGE)
    assert patched.code == 200
    assert "managedFields" not in patched.body["metadata"]
    assert "managedFields" not in (await server.call("GET", f"{CLAIMS}/a")).body["metadata"]


async def test_a_body_without_a_readable_kind_is_echoed(server: Client) -> None:
    answer = await server.call("POST", CLAIMS, '{"kind":1}')
    assert answer.body["message"].endswith('Go struct field .kind of type string ({"kind":1})')


async def test_refused_patches_are_sorted_where_they_went(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    answer = await server.call("PATCH", f"{CLAIMS}/a", {"kind": "Pod"}, content_type=MERGE)
    assert '"{\\"apiVersion\\":\\"resource.k8s.io/v1\\",\\"kind\\":\\"Pod\\",' in answer.body["message"]


@pytest.mark.parametrize(
    ("method", "headers", "data"),
    [
        pytest.param("GET", {"accept": "text/html"}, b"", id="an-answer-that-there-is-not"),
        pytest.param("PATCH", {"content-type": "text/html"}, b"", id="a-patch-that-there-is-not"),
        pytest.param("POST", {}, b"x" * (BODY_LIMIT + 1), id="too-much"),
        pytest.param("POST", {}, b"{", id="nonsense"),
    ],
)
async def test_who_may_not_hears_that_first(method: str, headers: dict[str, str], data: bytes) -> None:
    admin = await people.start()
    path = client.CLAIMS if method == "POST" else f"{client.CLAIMS}/c"
    content_type = headers.pop("content-type", "application/json")
    refused = await admin.showing("bob").send(method, path, data, content_type=content_type, headers=headers)
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    other = await admin.send(method, path, data, content_type=content_type, headers=headers)
    assert other.code in (400, 406, 413, 415)


async def test_very_long_accept_header_is_refused(server: Client) -> None:
    answer = await server.call("GET", CLAIMS, headers={"accept": "application/json," * 1000})
    assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable")
