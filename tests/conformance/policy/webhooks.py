"""Admission webhooks as scenarios want them: they answer what is written there, and remember what they were sent."""

import asyncio
import base64
import collections
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

from aiohttp import web

from tests.conformance.policy.identities import Identities
from tests.conformance.vectors import Line


class Webhooks:
    """The webhooks of several scenarios behind one address."""

    def __init__(self, identities: Identities, scenarios: Iterable[Line]) -> None:
        self.url = ""
        self.bundle = base64.b64encode((identities.folder / "ca.crt").read_bytes()).decode()
        self.received: dict[str, list[Any]] = collections.defaultdict(list)
        self._identities = identities
        self._answers = {
            f"/{scenario['name']}/{name}": answer
            for scenario in scenarios
            for name, answer in scenario.get("webhooks", {}).items()
        }

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        application = web.Application()
        application.router.add_post("/{scenario}/{name}", self._review)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._identities.folder / "webhook.crt", self._identities.folder / "webhook.key")
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener, ssl_context=context).start()
        self.url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _review(self, request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        self.received[request.path].append(review)
        answer = self._answers.get(request.path)
        if answer is None:
            return web.Response(status=404)
        await asyncio.sleep(answer.get("delay", 0))
        response = {**answer.get("response", {"allowed": True}), "uid": review["request"]["uid"]}
        if "patch" in response:
            patch = base64.b64encode(json.dumps(response["patch"]).encode()).decode()
            response |= {"patch": patch, "patchType": "JSONPatch"}
        body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        return web.json_response(body, status=answer.get("code", 200))
