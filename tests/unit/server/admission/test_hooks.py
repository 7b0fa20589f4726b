"""Functions that are asked as webhooks are: what they complete, refuse and say."""

from typing import Any

from drachma.server.admission import hooks
from drachma.server.wire import app
from tests.unit.server import client

_PLACE = "/api/v1/namespaces/default/configmaps"


def _labelled(review: hooks.Review) -> dict[str, Any] | None:
    metadata = review.document["metadata"]
    if "labels" in metadata:
        return None
    return {**review.document, "metadata": {**metadata, "labels": {"seen": "yes"}}}


def _verdict(review: hooks.Review) -> hooks.Verdict:
    data = review.document.get("data") or {}
    if review.old is not None and data != review.old.get("data"):
        return hooks.Verdict("data: field is immutable")
    return hooks.Verdict(warnings=("mind the gap",))


async def _start() -> client.Client:
    hook = hooks.Hook("maps.example.com", frozenset({"configmaps"}), mutate=_labelled, validate=_verdict)
    return await client.start(additions=app.Additions(functions=(hook,)))


def _map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}


async def test_new_objects_are_completed_and_clients_warned() -> None:
    server = await _start()
    made = await server.call("POST", _PLACE, _map(a="1"))
    assert made.code == 201
    assert made.body["metadata"]["labels"] == {"seen": "yes"}
    assert made.body["data"] == {"a": "1"}
    assert made.header("warning") == '299 - "mind the gap"'


async def test_a_refusal_is_that_of_a_webhook() -> None:
    server = await _start()
    await server.call("POST", _PLACE, _map(a="1"))
    refused = await server.call("PUT", f"{_PLACE}/m", _map(a="2"))
    assert refused.code == 403
    message = 'admission webhook "maps.example.com" denied the request: data: field is immutable'
    assert (refused.body["reason"], refused.body["message"]) == ("Forbidden", message)


async def test_other_kinds_are_not_asked_about() -> None:
    server = await _start()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    made = await server.call("POST", "/api/v1/namespaces/default/secrets", secret)
    assert made.code == 201
    assert made.header("warning") is None
