"""Large definitions are made into kinds outside the event loop, and served like others."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from drachma.bounds import effort
from drachma.server.kinds.apiextensions import customresource, customresourcedefinition, extensions
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.pipeline import update
from drachma.server.surface.apisurface import Kind
from tests.unit.server import client
from tests.unit.server.client import Client
from tests.unit.server.kinds.apiextensions import widgets
from tests.unit.server.kinds.apiextensions.widgets import DEFINITION, DEFINITIONS, MERGE


def _large(**properties: Any) -> dict[str, Any]:
    padding = {f"field{number:05d}": {"type": "string"} for number in range(2_000)}
    return widgets.definition(widgets.version(spec=widgets.fields(**padding, **properties)))


@pytest.fixture
def making_threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Threads in which kinds were made, in order."""
    threads: list[threading.Thread] = []
    make: Callable[[Definition], Kind] = customresource.kind

    def note(definition: Definition) -> Kind:
        threads.append(threading.current_thread())
        return make(definition)

    monkeypatch.setattr(customresource, "kind", note)
    return threads


async def test_their_kinds_are_made_in_a_thread(server: Client, making_threads: list[threading.Thread]) -> None:
    assert (await server.call("POST", DEFINITIONS, _large())).code == 201
    assert (await server.call("GET", widgets.path())).body["kind"] == "WidgetList"
    assert len(making_threads) == 1
    assert threading.main_thread() not in making_threads


async def test_their_status_is_decided_in_a_thread(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    decide = update.Update.decide

    def note(self: update.Update, *arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return decide(self, *arguments)

    monkeypatch.setattr(update.Update, "decide", note)
    await server.call("POST", DEFINITIONS, _large())
    assert threads
    assert threading.main_thread() not in threads


async def test_a_change_counts_once_its_writer_is_answered(server: Client) -> None:
    await server.call("POST", DEFINITIONS, _large(size={"type": "integer"}))
    refused = await server.call("POST", widgets.path(), widgets.widget("w", size="large"))
    assert refused.code == 422
    stored = (await server.call("GET", DEFINITION)).body
    changed = _large(size={"type": "string"})
    changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    assert (await server.call("PUT", DEFINITION, changed)).code == 200
    assert (await server.call("POST", widgets.path(), widgets.widget("w", size="large"))).code == 201


async def test_a_deleted_definition_is_served_no_more(server: Client) -> None:
    await server.call("POST", DEFINITIONS, _large())
    await server.call("DELETE", DEFINITION)
    await server.app.definitions.idle()
    assert (await server.call("GET", widgets.path())).code == 404


async def test_versions_that_are_served_no_more(server: Client) -> None:
    definition = _large()
    await server.call("POST", DEFINITIONS, definition)
    definition["spec"]["versions"][0]["served"] = False
    patch = {"spec": {"versions": definition["spec"]["versions"]}}
    assert (await server.call("PATCH", DEFINITION, patch, content_type=MERGE)).code == 200
    assert (await server.call("GET", widgets.path())).code == 404


async def test_they_outlive_the_server(server: Client) -> None:
    await server.call("POST", DEFINITIONS, _large())
    successor = await client.start(store=server.store)
    await successor.app.definitions.settle()
    assert (await successor.call("GET", widgets.path())).code == 200


async def test_their_kinds_stay_when_definitions_are_read_again(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of definitions that was interrupted starts again."""
    base = server.app.dispatcher.surface
    await server.call("POST", DEFINITIONS, _large())
    kinds = extensions.Extensions(server.store)
    (entry,) = kinds.unmade()
    kinds.add(extensions.MadeKind(entry))
    await server.call("PATCH", DEFINITION, {"metadata": {"labels": {"changed": "yes"}}}, content_type=MERGE)

    def interrupt(_document: object) -> bool:
        raise effort.OverrunError

    with monkeypatch.context() as patch:
        patch.setattr(customresourcedefinition, "is_established", interrupt)
        with pytest.raises(effort.OverrunError):
            kinds.extend(base)
    assert kinds.extend(base).find(widgets.GROUP, "v1", plural="widgets") is not None
