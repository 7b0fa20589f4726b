"""Watching: where it begins, what it shows, how it ends."""

import asyncio

import pytest

from drachma.server.wire import streaming
from drachma.store import memory, protocol
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client

MERGE = "application/merge-patch+json"


async def test_from_nowhere_it_begins_with_what_exists(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    async with server.watch(f"{CLAIMS}?watch=1") as stream:
        first = await stream.event()
        await server.call("POST", CLAIMS, client.claim("b"))
        second = await stream.event()
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in (first, second)] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]
    assert first["object"]["apiVersion"] == "resource.k8s.io/v1"


async def test_from_a_version_it_misses_nothing(server: Client) -> None:
    made = (await server.call("POST", CLAIMS, client.claim("a"))).body
    await server.call("PATCH", f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
    await server.call("DELETE", f"{CLAIMS}/a")
    version = made["metadata"]["resourceVersion"]
    async with server.watch(f"{CLAIMS}?watch=1&resourceVersion={version}") as stream:
        events = await stream.events(2)
    assert [each["type"] for each in events] == ["MODIFIED", "DELETED"]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    assert int(version) < versions[0] < versions[1] == server.store.revision


async def test_initial_events_end_with_a_bookmark(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server.watch(f"{CLAIMS}?{query}") as stream:
        added, bookmark = await stream.events(2)
    assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    assert bookmark["object"] == {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {
            "resourceVersion": str(server.store.revision),
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
        "spec": {"devices": {"requests": None}},
        "status": {},
    }


async def test_no_initial_events_if_they_are_not_wanted(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    async with server.watch(f"{CLAIMS}?{query}") as stream:
        await asyncio.sleep(0)
        await server.call("POST", CLAIMS, client.claim("b"))
        assert (await stream.event())["object"]["metadata"]["name"] == "b"


async def test_bookmarks_tell_how_far_it_has_seen(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BOOKMARK_SECONDS", 0.01)
    version = server.store.revision
    async with server.watch(f"{CLAIMS}?watch=1&allowWatchBookmarks=true&resourceVersion={version}") as stream:
        await server.call("POST", PODS, client.pod())
        while int((event := await stream.event())["object"]["metadata"]["resourceVersion"]) == version:
            assert event["type"] == "BOOKMARK"
        assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == (
            "BOOKMARK",
            str(server.store.revision),
        )


async def test_an_object_that_begins_or_ceases_to_match(server: Client) -> None:
    async with server.watch(f"{CLAIMS}?watch=1&labelSelector=on") as stream:
        await server.call("POST", CLAIMS, client.claim("a"))
        for labels in ({"on": "1"}, {"on": "2"}, {"on": None}, {"off": "1"}):
            await server.call("PATCH", f"{CLAIMS}/a", {"metadata": {"labels": labels}}, content_type=MERGE)
        events = await stream.events(3)
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"on": "2"}
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    assert versions == sorted(set(versions))


async def test_one_object_by_name(server: Client) -> None:
    for name in ("a", "b"):
        await server.call("POST", CLAIMS, client.claim(name))
    old = CLAIMS.replace("/v1/", "/v1/watch/")
    async with (
        server.watch(f"{CLAIMS}?watch=1&fieldSelector=metadata.name%3Db") as new,
        server.watch(f"{old}/b") as way,
    ):
        assert (await new.event())["object"]["metadata"]["name"] == "b"
        assert (await way.event())["object"]["metadata"]["name"] == "b"


async def test_other_versions_and_forms(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    async with server.watch(f"{CLAIMS.replace('/v1/', '/v1beta1/')}?watch=1") as stream:
        event = await stream.event()
    assert event["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
    assert "exactly" not in event["object"]["spec"]["devices"]["requests"][0]
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with server.watch(f"{CLAIMS}?watch=1", headers=accept) as stream:
        first = await stream.event()
        await server.call("POST", CLAIMS, client.claim("b"))
        second = await stream.event()
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert not second["object"].get("columnDefinitions")
    assert second["object"]["rows"][0]["cells"][0] == "b"


async def test_history_that_is_gone(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim("a"))
    await server.call("POST", CLAIMS, client.claim("b"))
    await server.store.compact(server.store.revision)
    async with server.watch(f"{CLAIMS}?watch=1&resourceVersion=2") as stream:
        event = await stream.event()
        assert await stream.event() is None
    assert stream.code == 200
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watcher_that_does_not_read_is_cut_and_others_are_not() -> None:
    server = await client.start(store=memory.MemoryStore(limits=protocol.Limits(history_events=20)))
    version = server.store.revision
    slow, quick = client.Stream(), client.Stream()
    slow.stall()
    query = f"{CLAIMS}?watch=1&resourceVersion={version}"
    tasks = [
        asyncio.create_task(server.app(server.scope("GET", query), each.receive, each.send)) for each in (slow, quick)
    ]
    for number in range(100):
        await server.call("POST", CLAIMS, client.claim(f"c{number}"))
    assert [each["type"] for each in await quick.events(100)] == ["ADDED"] * 100
    slow.resume()
    events = []
    while (event := await slow.event()) is not None:
        events.append(event)
    assert events[-1]["type"] == "ERROR"
    assert events[-1]["object"]["code"] == 410
    quick.hang_up()
    await asyncio.gather(*tasks)


async def test_it_ends_with_its_time(server: Client) -> None:
    async with server.watch(f"{CLAIMS}?watch=1&timeoutSeconds=1") as stream:
        assert await stream.event() is None


async def test_it_ends_when_the_server_drains(server: Client) -> None:
    async with server.watch(f"{CLAIMS}?watch=1") as stream:
        await _opened(server)
        server.app.drain()
        assert await stream.event() is None
    async with server.watch(f"{CLAIMS}?watch=1") as late:
        assert await late.event() is None


async def test_it_is_forgotten_when_the_client_goes(server: Client) -> None:
    async with server.watch(f"{CLAIMS}?watch=1"):
        await _opened(server)
        assert len(server.app.dispatcher.services.watches) == 1
    assert len(server.app.dispatcher.services.watches) == 0


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param("watch=1&resourceVersion=x", 500, id="no-version"),
        pytest.param("watch=1&labelSelector=a%20b", 400, id="bad-selector"),
        pytest.param("watch=1&sendInitialEvents=true", 422, id="initial-events-without-match"),
    ],
)
async def test_refused(server: Client, query: str, code: int) -> None:
    assert (await server.call("GET", f"{CLAIMS}?{query}")).code == code


async def _opened(server: Client) -> None:
    async with asyncio.timeout(60):
        while not len(server.app.dispatcher.services.watches):
            await asyncio.sleep(0)
