"""Flow control in front of an application: bodies that do not come, seats that are taken, queues, and headers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from drachma.server import flowdefaults
from drachma.server.user import User
from drachma.server.wire import limits as requestlimits
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, Client

ALL = "system:authenticated"
USERS = {name: User(name=name, groups=(ALL,)) for name in ("ann", "bob")}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
MERGE = "application/merge-patch+json"


class SlowBody:
    """A request whose body stops after its first byte, until it is told to go on."""

    def __init__(self, server: Client, path: str, body: bytes = b"{}") -> None:
        self._parts = [body[:1], body[1:]]
        self._goes_on = asyncio.Event()
        self._stream = client.Stream()
        self.reads = asyncio.Event()
        scope = server.scope("POST", path, content_type="application/json")
        self.task = asyncio.create_task(server.app(scope, self._receive, self._stream.send))

    async def _receive(self) -> Any:
        if len(self._parts) == 2:
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": True}
        self.reads.set()
        await self._goes_on.wait()
        return {"type": "http.request", "body": self._parts.pop(0), "more_body": False}

    async def finish(self) -> int:
        self._goes_on.set()
        await self.task
        return self._stream.code


class Gate:
    """A gate in front of the dispatcher, where requests wait with their seats."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.entered = 0

    @contextlib.asynccontextmanager
    async def closed(self, server: Client) -> AsyncIterator["Gate"]:
        dispatch = server.app.dispatcher.dispatch

        async def wait(call: Any, *arguments: Any, **options: Any) -> Any:
            self.entered += 1
            await self._open.wait()
            return await dispatch(call, *arguments, **options)

        server.app.dispatcher.dispatch = wait  # type: ignore[method-assign]
        try:
            yield self
        finally:
            server.app.dispatcher.dispatch = dispatch  # type: ignore[method-assign]
            self._open.set()

    def open(self) -> None:
        self._open.set()


async def _start(limits: requestlimits.Limits | None = None) -> Client:
    server = await client.start(limits=limits, users=USERS)
    await flowdefaults.populate(server.app.dispatcher)
    return server


async def _entered(gate: Gate, count: int) -> None:
    async with asyncio.timeout(30):
        while gate.entered < count:
            await asyncio.sleep(0)


async def test_bodies_that_do_not_come_hold_no_seats() -> None:
    server = await _start()
    slow = [SlowBody(server.showing("ann"), REVIEWS) for _ in range(700)]
    for each in slow:
        await each.reads.wait()
    assert (await server.call("GET", CLAIMS)).code == 200
    assert (await server.showing("bob").call("GET", CLAIMS)).code == 200
    assert (await server.showing("ann").call("GET", CLAIMS)).code == 200
    assert (await server.call("GET", "/healthz", headers={"authorization": ""})).code == 200
    codes = [await each.finish() for each in slow]
    assert 429 not in codes


async def test_masters_and_health_are_answered_while_all_seats_are_taken() -> None:
    server = await _start(requestlimits.Limits(seats=10))
    async with Gate().closed(server) as gate:
        taking = [asyncio.create_task(server.showing("ann").call("GET", CLAIMS)) for _ in range(200)]
        await _entered(gate, 1)
        assert (await server.call("GET", "/healthz", headers={"authorization": ""})).code == 200
        entered = gate.entered
        assert entered < 10
        own = asyncio.create_task(server.call("GET", CLAIMS))
        await _entered(gate, entered + 1)
        gate.open()
        assert (await own).code == 200
        answers = [(await each).code for each in taking]
    assert 200 in answers


async def test_one_user_cannot_keep_another_from_its_turn() -> None:
    server = await _start(requestlimits.Limits(seats=10))
    async with Gate().closed(server) as gate:
        elephant = [asyncio.create_task(server.showing("ann").call("GET", CLAIMS)) for _ in range(1000)]
        await _entered(gate, 1)
        mouse = asyncio.create_task(server.showing("bob").call("GET", CLAIMS))
        await asyncio.sleep(0)
        gate.open()
        assert (await mouse).code == 200
        codes = [(await each).code for each in elephant]
    assert codes.count(429) > 0, "queues of one user are limited"
    assert codes.count(200) > 0


async def test_request_that_finds_its_queue_full_is_told_when_to_try_again() -> None:
    server = await _start(requestlimits.Limits(seats=0))
    level = f"{FLOWS}/prioritylevelconfigurations/global-default"
    queuing = {"queues": 1, "handSize": 1, "queueLengthLimit": 1}
    patch = {"spec": {"limited": {"limitResponse": {"queuing": queuing}}}}
    assert (await server.call("PATCH", level, patch, content_type=MERGE)).code == 200
    first = asyncio.create_task(server.showing("ann").call("GET", CLAIMS))
    await asyncio.sleep(0)
    answer = await server.showing("bob").call("GET", CLAIMS)
    assert (answer.code, answer.header("retry-after")) == (429, "1")
    assert answer.body == "Too many requests, please try again later.\n"
    metrics = (await server.call("GET", "/metrics")).body
    labels = 'flow_schema="global-default",priority_level="global-default"'
    assert f'apiserver_flowcontrol_rejected_requests_total{{{labels},reason="queue-full"}} 1.0' in metrics
    assert f"apiserver_flowcontrol_current_inqueue_requests{{{labels}}} 1.0" in metrics
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    metrics = (await server.call("GET", "/metrics")).body
    assert f"apiserver_flowcontrol_current_inqueue_requests{{{labels}}} 0.0" in metrics


async def test_wait_for_a_seat_ends() -> None:
    server = await _start(requestlimits.Limits(seats=0, request_seconds=0.8))
    assert (await server.showing("ann").call("GET", CLAIMS)).code == 429
    assert 'reason="time-out"} 1.0' in (await server.call("GET", "/metrics")).body


async def test_answers_name_schema_and_level() -> None:
    server = await _start()
    for user, schema, level in (("ann", "global-default", "global-default"), (client.TOKEN, "exempt", "exempt")):
        answer = await server.showing(user).call("GET", CLAIMS)
        want = [
            (await server.call("GET", f"{FLOWS}/{kind}/{name}")).body["metadata"]["uid"]
            for kind, name in (("flowschemas", schema), ("prioritylevelconfigurations", level))
        ]
        names = ("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid")
        assert [answer.header(name) for name in names] == want


async def test_changed_schema_counts_at_once() -> None:
    server = await _start(requestlimits.Limits(seats=0, request_seconds=0.8))
    assert (await server.showing("ann").call("GET", CLAIMS)).code == 429
    patch = {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}}
    changed = await server.call("PATCH", f"{FLOWS}/flowschemas/global-default", patch, content_type=MERGE)
    assert changed.code == 200
    assert (await server.showing("ann").call("GET", CLAIMS)).code == 200


async def test_schema_without_its_level_matches_nothing() -> None:
    server = await _start()
    patch = {"spec": {"priorityLevelConfiguration": {"name": "missing"}}}
    await server.call("PATCH", f"{FLOWS}/flowschemas/global-default", patch, content_type=MERGE)
    answer = await server.showing("ann").call("GET", CLAIMS)
    catch_all = (await server.call("GET", f"{FLOWS}/flowschemas/catch-all")).body["metadata"]["uid"]
    assert answer.header("x-kubernetes-pf-flowschema-uid") == catch_all
    changed = (await server.call("GET", f"{FLOWS}/flowschemas/global-default")).body
    assert changed["spec"]["priorityLevelConfiguration"]["name"] == "missing", "the change of a user is kept"
    conditions = {each["type"]: each["status"] for each in changed.get("status", {}).get("conditions", ())}
    assert conditions.get("Dangling") != "True"


async def test_open_watch_holds_no_seat() -> None:
    server = await _start(requestlimits.Limits(seats=7))
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(20):
            stream = await stack.enter_async_context(server.showing("ann").watch(f"{CLAIMS}?watch=1"))
            await server.call("POST", CLAIMS, client.claim(f"c{id(stream)}"))
            assert (await stream.event())["type"] == "ADDED"
        assert (await server.showing("ann").call("GET", CLAIMS)).code == 200


async def test_body_has_its_time() -> None:
    limits = requestlimits.Limits(bodies=requestlimits.BodyLimits(seconds=0.02))
    server = await _start(limits)
    slow = SlowBody(server.showing("ann"), REVIEWS)
    await slow.task
    assert slow._stream.code == 504


async def test_bytes_of_bodies_are_limited_for_users_and_not_for_masters() -> None:
    limits = requestlimits.Limits(bodies=requestlimits.BodyLimits(user_bytes=100))
    server = await _start(limits)
    claim = client.claim(annotations={"a": "x" * 200})
    refused = await server.showing("ann").call("POST", CLAIMS, claim)
    assert (refused.code, refused.header("retry-after")) == (429, "1")
    assert (await server.call("POST", CLAIMS, claim)).code == 201
    held = server.app._bodies
    assert (held.total, held._by_user) == (0, {})


async def test_flows_of_users_with_very_many_groups_are_not_remembered() -> None:
    large = User(name="ann", groups=(ALL, *(f"group-{number}" for number in range(1000))))
    server = await client.start(users={"ann": large})
    for _ in range(2):
        assert (await server.showing("ann").call("GET", CLAIMS)).code == 200
    assert not server.app._flows._flows
