"""Kinds served beside an API server that passes requests on to them (an APIService): an extension of its API.

Only what is observed is served, from what somebody in the process has in memory; there is nothing to write.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from aiohttp import web

from drachma import errors
from drachma.api import gates
from drachma.process.extensionaccess import ExtensionAccess
from drachma.runtime.accessreviews import Action, User
from drachma.server import status, user
from drachma.server.access import attributes, authorization
from drachma.server.calls.call import Target
from drachma.server.pipeline import observation, services
from drachma.server.surface import apisurface, routes
from drachma.server.surface.strategy import Environment
from drachma.server.wire import app, health, nonresource, responses
from drachma.server.wire.requests import Message, Request
from drachma.store import memory

_log = logging.getLogger(__name__)


class ExtensionApi:
    """Answers requests of aiohttp as an API server does."""

    def __init__(self, additions: app.Additions, access: ExtensionAccess) -> None:
        """Of ``additions``, kinds and observers count."""
        environment = Environment(gates=gates.ALL, store=memory.MemoryStore())
        self._surface: Final = apisurface.ApiSurface(additions.kinds, environment=environment)
        self._observers: Final[services.Observers] = additions.observers
        self._access: Final = access
        checks = health.Health({"ping": lambda: ""}, {})
        self._nonresource: Final = nonresource.NonResource(checks)

    async def handle(self, asked: web.Request) -> web.Response:
        """The answer to a request, whoever makes it."""
        request = _request(asked)
        try:
            answer = await self._answer(request, await self._access.user_of(asked))
        except status.StatusError as error:
            answer = responses.refusal(error, request.refusal_output)
        except routes.NotServedError:
            answer = responses.not_served()
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("%s %s: cannot tell who may ask: %s", request.method, request.path, error)
            answer = responses.refusal(status.internal(f"cannot tell who may ask: {error}"))
        headers = [(name.decode(), value.decode()) for name, value in answer.headers]
        return web.Response(status=answer.code, body=answer.body, headers=headers)

    async def _answer(self, request: Request, asker: User | None) -> responses.Response:
        if asker is None:
            raise status.unauthorized()
        wanted = attributes.of_path(
            request.method, request.path, user=user.User(name=asker.name, groups=asker.groups), query=request.query
        )
        action = Action(
            verb=wanted.verb,
            group=wanted.group,
            version=wanted.version,
            resource=wanted.resource,
            subresource=wanted.subresource,
            namespace=wanted.namespace,
            name=wanted.name,
            path=wanted.path or "",
        )
        if not await self._access.may(asker, action):
            raise authorization.forbidden(wanted)
        route = self._surface.route(request.method, request.path) if request.path.startswith("/api") else None
        if route is None:
            return self._nonresource.serve(request, self._surface)
        target = Target(route.resource, route.version, route.namespace, route.name, route.subresource)
        return responses.document(200, observation.observed(self._observers, target, request.query), request.output)


def _request(asked: web.Request) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": asked.method,
        "path": asked.path,
        "query_string": asked.query_string.encode("latin-1", "replace"),
        "headers": [(name.lower(), value) for name, value in asked.raw_headers],
    }

    async def receive() -> Message:
        raise AssertionError("nothing that is served here has a body")

    return Request(scope, receive)
