"""Large calls are decided at desks, apart from the event loop: others are answered meanwhile, and nothing is lost."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from drachma.bounds import effort
from drachma.server import lanes
from drachma.server.admission import hooks
from drachma.server.wire import answers, app
from tests.unit.server import client

SPACE = "/api/v1/namespaces/elsewhere"
MAPS = f"{SPACE}/configmaps"
SMALL = "/api/v1/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Held:
    """Stops every write of a ConfigMap named ``large`` until it is let go."""

    def __init__(self) -> None:
        self.come = threading.Event()
        self.let_go = threading.Event()
        self.times = 0
        self.threads: set[int] = set()

    def look(self, review: hooks.Review) -> hooks.Verdict:
        if review.document["metadata"]["name"] == "large":
            self.times += 1
            self.threads.add(threading.get_ident())
            self.come.set()
            self.let_go.wait(60)
        return hooks.Verdict()

    async def arrival(self) -> None:
        """Until a write has come here."""
        assert await asyncio.to_thread(self.come.wait, 60)


async def start(held: Held) -> client.Client:
    hook = hooks.Hook("maps.example.com", frozenset({"configmaps"}), validate=held.look)
    server = await client.start(additions=app.Additions(functions=(hook,)))
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    return server


def configmap(name: str, size: int, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": "x" * size, **data},
    }


@pytest.mark.parametrize("size", [lanes.LARGE, lanes.VERY_LARGE])
async def test_others_are_answered_while_a_large_body_is_decided(size: int) -> None:
    held = Held()
    server = await start(held)
    large = asyncio.create_task(server.call("POST", MAPS, configmap("large", size)))
    await held.arrival()
    read = await server.call("GET", SMALL)
    written = await server.call("POST", MAPS, configmap("small", 1))
    assert (read.code, written.code, large.done()) == (200, 201, False)
    held.let_go.set()
    assert (await large).code == 201
    assert threading.get_ident() not in held.threads


async def test_the_very_large_do_not_hold_up_the_large() -> None:
    held = Held()
    server = await start(held)
    very_large = asyncio.create_task(server.call("POST", MAPS, configmap("large", lanes.VERY_LARGE)))
    await held.arrival()
    assert (await server.call("POST", MAPS, configmap("less", lanes.LARGE))).code == 201
    assert not very_large.done()
    held.let_go.set()
    assert (await very_large).code == 201


async def test_a_small_patch_of_a_large_object_is_large() -> None:
    held = Held()
    held.let_go.set()
    server = await start(held)
    await server.call("POST", MAPS, configmap("large", lanes.LARGE))
    held.threads.clear()
    patch = {"data": {"a": "b"}}
    answer = await server.call("PATCH", f"{MAPS}/large", patch, content_type="application/merge-patch+json")
    assert (answer.code, answer.body["data"]["a"]) == (200, "b")
    assert held.threads
    assert threading.get_ident() not in held.threads


async def _terminate(server: client.Client) -> None:
    assert (await server.call("DELETE", SPACE)).code == 200


async def _relabel(server: client.Client) -> None:
    answer = await server.call(
        "PATCH", SPACE, {"metadata": {"labels": {"a": "b"}}}, content_type="application/merge-patch+json"
    )
    assert answer.code == 200


async def _make_another(server: client.Client) -> None:
    assert (await server.call("POST", MAPS, configmap("other", 1))).code == 201


@pytest.mark.parametrize(
    ("change", "want_code", "want_times"),
    [
        pytest.param(_terminate, 403, 1, id="the-namespace-ends"),
        pytest.param(_relabel, 201, 2, id="the-namespace-changes"),
        pytest.param(_make_another, 201, 1, id="something-else-changes"),
    ],
)
async def test_what_was_looked_up_is_still_so_when_it_is_written(
    change: Callable[[client.Client], Any], want_code: int, want_times: int
) -> None:
    held = Held()
    server = await start(held)
    large = asyncio.create_task(server.call("POST", MAPS, configmap("large", lanes.LARGE)))
    await held.arrival()
    await change(server)
    held.let_go.set()
    answer = await large
    assert answer.code == want_code, answer.body
    assert held.times == want_times
    assert ((await server.call("GET", f"{MAPS}/large")).code == 200) is (want_code == 201)


async def test_large_bodies_are_refused_like_others() -> None:
    server = await client.start()
    large = await server.call("POST", SMALL + "/configmaps", configmap("Not a name", lanes.LARGE))
    small = await server.call("POST", SMALL + "/configmaps", configmap("Not a name", 1))
    assert (large.code, large.body) == (422, small.body)


async def test_a_large_question_is_answered() -> None:
    server = await client.start()
    spec = {"user": "u", "groups": ["g" * lanes.LARGE], "resourceAttributes": {"verb": "get", "resource": "pods"}}
    answer = await server.call(
        "POST", REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    )
    assert (answer.code, answer.body["status"]) == (201, {"allowed": True})


@pytest.mark.parametrize(
    ("accept", "want_aside"),
    [
        pytest.param("application/yaml", True, id="as-yaml"),
        pytest.param("application/json;as=Table;v=v1;g=meta.k8s.io", True, id="as-a-table"),
        pytest.param("application/json", False, id="as-it-is-stored"),
    ],
)
@pytest.mark.parametrize("name", ["/large", ""], ids=["an-object", "a-list"])
async def test_large_answers_are_written_aside(
    monkeypatch: pytest.MonkeyPatch, accept: str, name: str, *, want_aside: bool
) -> None:
    server = await client.start()
    path = SMALL + "/configmaps"
    await server.call("POST", path, configmap("large", lanes.VERY_LARGE))
    threads: list[int] = []
    write = answers.Presenter.response

    def noted(self: answers.Presenter, *arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return write(self, *arguments)

    monkeypatch.setattr(answers.Presenter, "response", noted)
    answer = await server.call("GET", path + name, headers={"accept": accept})
    assert answer.code == 200
    assert [thread != threading.get_ident() for thread in threads] == [want_aside]


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/elsewhere/resourceclaims"


def claim(*expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}
    return {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [request]}}}


def costly_claim(name: str) -> dict[str, Any]:
    """A small claim with patterns that take long to compile, which nothing has compiled before."""
    return claim(*(f'device.driver.matches("{name}-{number}-\\\\PL{{60}}")' for number in range(2)))


async def decided_in(body: dict[str, Any]) -> tuple[int, set[int], Any]:
    """The code of creating a claim, the threads that looked at it, and the answer."""
    threads: set[int] = set()

    def look(review: hooks.Review) -> hooks.Verdict:
        threads.add(threading.get_ident())
        return hooks.Verdict()

    hook = hooks.Hook("claims.example.com", frozenset({"resource.k8s.io/resourceclaims"}), validate=look)
    server = await client.start(additions=app.Additions(functions=(hook,)))
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    answer = await server.call("POST", CLAIMS, body)
    return answer.code, threads, answer


async def test_a_small_body_that_takes_long_is_decided_aside() -> None:
    code, threads, _ = await decided_in(costly_claim("aside"))
    assert code == 201
    assert threading.get_ident() not in threads


async def test_a_small_body_that_takes_no_time_is_decided_on_the_loop() -> None:
    code, threads, _ = await decided_in(claim('device.driver == "x.example.com"'))
    assert (code, threads) == (201, {threading.get_ident()})


async def test_a_body_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "THREAD_UNITS", 50_000)
    code, threads, answer = await decided_in(costly_claim("refused"))
    assert (code, threads) == (413, set())
    assert "deciding takes more effort than a request may take" in answer.body["message"]


async def test_warnings_are_given_once_however_often_a_call_is_decided() -> None:
    body = costly_claim("warned")
    body["surplus"] = 1
    _, _, answer = await decided_in(body)
    assert [value for name, value in answer.headers if name.lower() == "warning"] == [
        '299 - "unknown field \\"surplus\\""'
    ]
