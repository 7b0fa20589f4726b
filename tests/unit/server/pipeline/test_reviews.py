"""Reviews: each kind has an answer, is discoverable, and stores nothing."""

from typing import Any

import pytest

from drachma.server.kinds import builtin
from drachma.server.pipeline import dispatcher
from drachma.server.surface import verbs
from tests.unit.server.client import Client

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def test_every_question_has_an_answer() -> None:
    questions = {kind.key: kind.verbs for kind in builtin.KINDS if kind.traits.is_question}
    assert set(questions) == set(dispatcher.QUESTIONS)
    assert set(questions.values()) == {(verbs.CREATE,)}


async def test_who_asks_is_told_who_that_is(server: Client) -> None:
    before = server.store.revision
    answer = await server.call("POST", REVIEWS, {"metadata": {"name": "ignored"}})
    assert answer.code == 201
    assert answer.body == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"},
        "status": {"userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}},
    }
    assert server.store.revision == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_questions_are_not_kept(server: Client, method: str) -> None:
    answer = await server.call(method, REVIEWS)
    assert answer.code == 405


async def test_what_is_no_question_is_refused(server: Client) -> None:
    answer = await server.call("POST", REVIEWS, {"kind": "Pod", "apiVersion": "v1"})
    assert answer.code == 400


async def test_clients_find_it(server: Client) -> None:
    listed = (await server.call("GET", "/apis/authentication.k8s.io/v1")).body["resources"]
    entry: dict[str, Any] = next(each for each in listed if each["name"] == "selfsubjectreviews")
    assert entry == {
        "name": "selfsubjectreviews",
        "singularName": "selfsubjectreview",
        "namespaced": False,
        "kind": "SelfSubjectReview",
        "verbs": ["create"],
    }
    document = (await server.call("GET", "/openapi/v3/apis/authentication.k8s.io/v1")).body
    assert list(document["paths"][REVIEWS]) == ["post", "parameters"]
