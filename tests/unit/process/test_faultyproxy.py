"""What stands between a driver under test and its API server: it passes on what it gets, unless a fault is in force."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
from aiohttp import web

from drachma.client import access
from drachma.driver.conformance.apifaults import ApiFaults, Fault
from drachma.process import faultyproxy


class _Server:
    """An API server that tells what it was asked; its streams go on when it is told so."""

    def __init__(self) -> None:
        self.more = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"first\n")
            await self.more.wait()
            await response.write(b"second\n")
            return response
        body = await request.text()
        shown = [request.method, request.path_qs, body, request.headers["Authorization"], request.headers["X-Own"]]
        return web.json_response(shown, status=HTTPStatus.CREATED)


@asynccontextmanager
async def _between(faults: ApiFaults) -> AsyncIterator[tuple[_Server, str]]:
    server = _Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reached = access.Access(server=f"http://127.0.0.1:{runner.addresses[0][1]}", source="test", token="admin")
        async with faultyproxy.serving(reached, faults) as url:
            yield server, url
    finally:
        await runner.cleanup()


async def test_requests_are_passed_on() -> None:
    async with (
        _between(ApiFaults()) as (_, url),
        aiohttp.ClientSession(headers={"X-Own": "x"}) as session,
        session.post(f"{url}/api/v1/pods?dryRun=All", data="body") as answer,
    ):
        assert answer.status == HTTPStatus.CREATED
        assert await answer.json() == ["POST", "/api/v1/pods?dryRun=All", "body", "Bearer admin", "x"]


async def test_streams_are_passed_on_as_they_come() -> None:
    async with (
        _between(ApiFaults()) as (server, url),
        aiohttp.ClientSession() as session,
        session.get(f"{url}/api/v1/pods?watch=1") as answer,
    ):
        assert await answer.content.readline() == b"first\n"
        server.more.set()
        assert await answer.content.readline() == b"second\n"


async def test_a_fault_is_met_by_what_it_is_about() -> None:
    faults = ApiFaults()
    path = "apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
    async with _between(faults) as (_, url), aiohttp.ClientSession(headers={"X-Own": "x"}) as session:
        fault = Fault(resource="resourceclaims", methods=frozenset({"GET"}), code=HTTPStatus.CONFLICT, times=1)
        with faults.injected(fault) as injection:
            async with session.get(f"{url}/apis/resource.k8s.io/v1/resourceslices") as answer:
                assert answer.status == HTTPStatus.CREATED, "about something else"
            async with session.get(f"{url}/{path}") as answer:
                assert (answer.status, (await answer.json())["reason"]) == (HTTPStatus.CONFLICT, "Conflict")
            async with session.get(f"{url}/{path}") as answer:
                assert answer.status == HTTPStatus.CREATED, "only once"
        assert injection.is_over
