"""Both clients ask for the same: the parameters of a call do not depend on the way that it takes."""

import urllib.parse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from drachma.api import meta, pod
from drachma.client import Client, Selection, access, http, local, patches, target
from tests.unit.client.clocks import FakeClock
from tests.unit.client.fakeserver import Answer, serving

POD = pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="ns", uid="u"))
BODY = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}


class _Stored(msgspec.Struct, frozen=True, eq=False):
    data: bytes
    uid: str = ""


class _Page(msgspec.Struct, frozen=True):
    records: Sequence[_Stored] = ()
    revision: int = 7
    token: str = ""
    remaining: int | None = None


class _Backend:
    """A server in process that remembers the parameters of calls."""

    def __init__(self) -> None:
        self.queries: list[dict[str, list[str]]] = []

    async def get(self, _place: local.Place) -> local.Stored:
        return self._asked({})

    async def get_document(self, place: local.Place) -> bytes:
        return (await self.get(place)).data

    async def write_document(self, wanted: local.Write) -> bytes:
        return (await self.write(wanted)).data

    async def list(self, _place: local.Place, query: local.Query) -> local.Page:
        self._asked(query)
        return _Page()

    async def watch(self, _place: local.Place, query: local.Query) -> local.Feed:
        raise NotImplementedError

    async def write(self, wanted: local.Write) -> local.Stored:
        return self._asked(wanted.query)

    async def commit(self, several: Sequence[local.Write]) -> Sequence[local.Stored]:
        return [self._asked(wanted.query) for wanted in several]

    async def openapi(self, group: str, version: str) -> bytes | None:
        raise NotImplementedError

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        return ()

    def _asked(self, query: local.Query) -> _Stored:
        self.queries.append({name: list(values) for name, values in query.items()})
        return _Stored(msgspec.json.encode(BODY))


@pytest.mark.parametrize(
    ("act", "answer"),
    [
        pytest.param(lambda client: client.create(POD), BODY, id="create"),
        pytest.param(lambda client: client.create_document(pod.Pod, BODY), BODY, id="create-document"),
        pytest.param(lambda client: client.update_document(pod.Pod, BODY), BODY, id="update-document"),
        pytest.param(
            lambda client: client.patch(pod.Pod, "p", namespace="ns", patch=patches.merge({"status": {}})),
            BODY,
            id="patch",
        ),
        pytest.param(
            lambda client: client.patch(pod.Pod, "p", namespace="ns", patch=patches.apply({}, force=True)),
            BODY,
            id="forced-apply",
        ),
        pytest.param(lambda client: client.bind(POD, node="n"), BODY, id="bind"),
        pytest.param(lambda client: client.evict(POD), BODY, id="evict"),
        pytest.param(lambda client: client.delete(pod.Pod, "p", namespace="ns"), BODY, id="delete"),
        pytest.param(
            lambda client: client.delete_collection(pod.Pod, Selection("ns", labels="a=b")), BODY, id="deletecollection"
        ),
        pytest.param(lambda client: client.get(pod.Pod, "p", namespace="ns"), BODY, id="get"),
        pytest.param(
            lambda client: client.list(pod.Pod, Selection("ns", fields="spec.nodeName=n"), limit=5, continue_token="t"),
            LIST,
            id="list",
        ),
    ],
)
async def test_parameters(act: Callable[[Client], Awaitable[Any]], answer: dict[str, Any]) -> None:
    backend = _Backend()
    await act(local.LocalClient(backend, manager="tester"))
    async with serving(Answer(body=answer)) as server:
        reached = access.Access(server=server.url, source="test")
        async with http.HttpClient(reached, manager="tester", clock=FakeClock()) as client:
            await act(client)
    (line,) = server.lines
    assert backend.queries == [urllib.parse.parse_qs(urllib.parse.urlsplit(line).query)]
