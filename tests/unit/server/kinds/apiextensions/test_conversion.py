"""Objects of versions that differ, converted by a webhook over TLS, which may be slow, silent or wrong."""

import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.unit.server.admission import webhookserver
from tests.unit.server.admission.webhookserver import WebhookServer
from tests.unit.server.client import Client
from tests.unit.server.kinds.apiextensions import widgets
from tests.unit.server.kinds.apiextensions.widgets import DEFINITIONS, MERGE

V1, V2 = widgets.path("v1"), widgets.path("v2")


def _renamed(document: dict[str, Any], desired: str) -> dict[str, Any]:
    """Version 2 calls the color a hue."""
    names = {"color": "hue"} if desired.endswith("v2") else {"hue": "color"}
    spec = {names.get(name, name): value for name, value in document["spec"].items()}
    return {**document, "apiVersion": desired, "spec": spec}


def _converting(change: Callable[[dict[str, Any]], Any] = lambda response: None) -> webhookserver.Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        review = await request.json()
        question = review["request"]
        converted = [_renamed(each, question["desiredAPIVersion"]) for each in question["objects"]]
        response = {"uid": question["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        change(response)
        return web.json_response({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response})

    return handle


@pytest_asyncio.fixture
async def webhook(tmp_path: pathlib.Path, server: Client) -> AsyncIterator[WebhookServer]:
    """A webhook that converts widgets, which are defined with it; version 2 is stored."""
    async with webhookserver.running(tmp_path) as started:
        started.responses["/convert"] = _converting()
        client = {"clientConfig": started.client("/convert"), "conversionReviewVersions": ["v1"]}
        created = await server.call(
            "POST",
            DEFINITIONS,
            widgets.definition(
                widgets.version("v1", storage=False, spec=widgets.fields(color={"type": "string"})),
                widgets.version("v2", spec=widgets.fields(hue={"type": "string"})),
                conversion={"strategy": "Webhook", "webhook": client},
            ),
        )
        assert created.code == 201, created.body
        yield started


@pytest.mark.usefixtures("webhook")
async def test_an_object_is_the_same_in_all_versions(server: Client) -> None:
    created = await server.call("POST", V1, widgets.widget(version="v1", color="red"))
    assert (created.code, created.body["spec"]) == (201, {"color": "red"})
    stored_object = await server.call("GET", f"{V2}/w")
    assert stored_object.body["spec"] == {"hue": "red"}
    changed = await server.call("PATCH", f"{V1}/w", {"spec": {"color": "blue"}}, content_type=MERGE)
    assert (changed.body["apiVersion"], changed.body["spec"]) == (f"{widgets.GROUP}/v1", {"color": "blue"})
    assert (await server.call("GET", f"{V2}/w")).body["spec"] == {"hue": "blue"}
    applied = await server.call(
        "PATCH", f"{V1}/w?fieldManager=m&force=true", widgets.widget(color="green"), content_type=widgets.APPLY
    )
    assert applied.body["spec"] == {"color": "green"}


async def test_lists_and_watches_are_converted(server: Client, webhook: WebhookServer) -> None:
    for name in ("a", "b", "c"):
        await server.call("POST", V2, widgets.widget(name, version="v2", hue=name))
    assert webhook.reviews == [], "what is stored is not converted"
    listed = (await server.call("GET", V1)).body["items"]
    assert [each["spec"] for each in listed] == [{"color": "a"}, {"color": "b"}, {"color": "c"}]
    question = len(webhook.reviews)
    assert (await server.call("GET", V1)).body["items"] == listed
    assert len(webhook.reviews) == question, "what was asked once is known"
    async with server.watch(f"{V1}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan") as stream:
        assert [event["object"]["spec"]["color"] for event in await stream.events(3)] == ["a", "b", "c"]
        await server.call("PATCH", f"{V2}/a", {"spec": {"hue": "new"}}, content_type=MERGE)
        assert (await stream.event())["object"]["spec"] == {"color": "new"}


@pytest.mark.parametrize(
    ("handler", "want"),
    [
        pytest.param(
            _converting(lambda response: response.update(result={"status": "Failed", "message": "I cannot"})),
            "conversion webhook for toys.example.com/v2, Kind=Widget failed: I cannot",
            id="refuses",
        ),
        pytest.param(
            _converting(lambda response: response.update(uid="other")), "failed: expected response.uid=", id="other-uid"
        ),
        pytest.param(
            _converting(lambda response: response["convertedObjects"].clear()),
            "returned 0 objects, expected 1",
            id="nothing",
        ),
        pytest.param(
            _converting(lambda response: response["convertedObjects"][0].update(apiVersion="toys.example.com/v3")),
            "returned invalid object at index 0: invalid groupVersion (expected toys.example.com/v1, received "
            "toys.example.com/v3)",
            id="another-version",
        ),
        pytest.param(
            _converting(lambda response: response["convertedObjects"][0]["metadata"].update(name="other")),
            "returned invalid object: must have the same name: w != other",
            id="another-name",
        ),
        pytest.param(webhookserver.flood, "the answer has more than 10485760 bytes", id="flood"),
    ],
)
async def test_what_is_wrong_with_a_webhook_is_said(
    server: Client, webhook: WebhookServer, handler: webhookserver.Handler, want: str
) -> None:
    await server.call("POST", V2, widgets.widget(version="v2", hue="red"))
    webhook.responses["/convert"] = handler
    failed = await server.call("GET", f"{V1}/w")
    assert failed.code == 500
    assert want in failed.body["message"]
    assert (await server.call("GET", f"{V2}/w")).code == 200, "what needs no conversion is served"
    refusal = await server.call("POST", V1, widgets.widget("v", version="v1", color="red"))
    assert refusal.code == 500
    assert (await server.call("GET", f"{V2}/v")).code == 404, "nothing is left behind"
    webhook.responses["/convert"] = _converting()
    assert (await server.call("GET", f"{V1}/w")).body["spec"] == {"color": "red"}, "a failure is not remembered"


async def test_a_webhook_changes_labels_and_nothing_else_of_metadata(server: Client, webhook: WebhookServer) -> None:
    def relabel(response: dict[str, Any]) -> None:
        response["convertedObjects"][0]["metadata"].update(labels={"l": "new"}, generation=77, finalizers=["x/y"])

    await server.call("POST", V2, widgets.widget(version="v2", hue="red"))
    webhook.responses["/convert"] = _converting(relabel)
    metadata = (await server.call("GET", f"{V1}/w")).body["metadata"]
    assert (metadata["labels"], metadata["generation"], "finalizers" in metadata) == ({"l": "new"}, 1, False)
