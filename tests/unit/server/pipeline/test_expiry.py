"""Events are removed when they have not been written for a while."""

from typing import Any

from drachma.server.pipeline import expiry
from tests.unit.server.client import Client

EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


async def event(server: Client, name: str, **metadata: Any) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"metadata": {"name": name, **metadata}, "involvedObject": about}
    assert (await server.call("POST", EVENTS, body)).code == 201


async def names(server: Client) -> list[str]:
    return [each["metadata"]["name"] for each in (await server.call("GET", EVENTS)).body["items"]]


async def test_an_event_goes_after_its_time(server: Client) -> None:
    due = expiry.Expiry(server.app.dispatcher, plural="events", seconds=100)
    await event(server, "a", finalizers=["example.com/hold"])
    assert await due.sweep(0) == 0
    await event(server, "b")
    assert [await due.sweep(60), await due.sweep(99)] == [0, 0]
    async with server.watch(f"{EVENTS}?watch=1&resourceVersion={server.store.revision}") as stream:
        assert await due.sweep(100) == 1
        assert await names(server) == ["b"]
        gone = await stream.event()
    assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")
    assert await due.sweep(160) == 1
    assert await names(server) == []


async def test_who_writes_an_event_keeps_it(server: Client) -> None:
    due = expiry.Expiry(server.app.dispatcher, plural="events", seconds=100)
    await event(server, "a")
    await due.sweep(0)
    await server.call("PATCH", f"{EVENTS}/a", {"count": 2}, content_type=MERGE)
    assert await due.sweep(100) == 0
    assert await due.sweep(200) == 1


async def test_many_go_at_once_and_nothing_else_does(server: Client) -> None:
    due = expiry.Expiry(server.app.dispatcher, plural="events", seconds=1)
    for number in range(230):
        await event(server, f"e{number}")
    maps = "/api/v1/namespaces/default/configmaps"
    await server.call("POST", maps, {"metadata": {"name": "m"}})
    await due.sweep(0)
    assert await due.sweep(1) == 230
    assert await names(server) == []
    assert (await server.call("GET", f"{maps}/m")).code == 200
