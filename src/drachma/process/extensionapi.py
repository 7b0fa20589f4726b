"""An extension API server, to which an API server proxies the requests of an APIService.

It serves observed kinds only, from the memory of the process; there is nothing to write.
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
from drachma.server.pipeline import reading, services
from drachma.server.surface import apisurface, routes
from drachma.server.surface.strategy import Environment
from drachma.server.wire import app, health, nonresource, responses
from drachma.server.wire.requests import Message, Request
from drachma.store import memory

_log = logging.getLogger(__name__)


class ExtensionApi:
    """Handler of aiohttp requests that answers as an API server does."""

    def __init__(self, additions: app.Additions, access: ExtensionAccess) -> None:
        """``additions`` provides the kinds and observers; its other fields are ignored."""
        environment = Environment(gates=gates.ALL, store=memory.MemoryStore())
        self._surface: Final = apisurface.ApiSurface(additions.kinds, environment=environment)
        self._observers: Final[services.Observers] = additions.observers
        self._access: Final = access
        checks = health.Health({"ping": lambda: ""}, {})
        self._nonresource: Final = nonresource.NonResource(checks)

    async def handle(self, http_request: web.Request) -> web.Response:
        """Return the answer to a request."""
        request = _request(http_request)
        try:
            answer = await self._answer(request, await self._access.user_of(http_request))
        except status.StatusError as error:
            answer = responses.refusal(error, request.refusal_output)
        except routes.NotServedError:
            answer = responses.not_served()
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("%s %s: cannot authorize: %s", request.method, request.path, error)
            answer = responses.refusal(status.internal(f"cannot authorize: {error}"))
        headers = [(name.decode(), value.decode()) for name, value in answer.headers]
        return web.Response(status=answer.code, body=answer.body, headers=headers)

    async def _answer(self, request: Request, requester: User | None) -> responses.Response:
        if requester is None:
            raise status.unauthorized()
        requested = attributes.from_path(
            request.method,
            request.path,
            user=user.User(name=requester.name, groups=requester.groups),
            query=request.query,
        )
        action = Action(
            verb=requested.verb,
            group=requested.group,
            version=requested.version,
            resource=requested.resource,
            subresource=requested.subresource,
            namespace=requested.namespace,
            name=requested.name,
            path=requested.path or "",
        )
        if not await self._access.may(requester, action):
            raise authorization.forbidden(requested)
        route = self._surface.route(request.method, request.path) if request.path.startswith("/api") else None
        if route is None:
            return self._nonresource.serve(request, self._surface)
        target = Target(route.resource, route.version, route.namespace, route.name, route.subresource)
        return responses.document(200, reading.observed(self._observers, target, request.query), request.output)


def _request(http_request: web.Request) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": http_request.method,
        "path": http_request.path,
        "query_string": http_request.query_string.encode("latin-1", "replace"),
        "headers": [(name.lower(), value) for name, value in http_request.raw_headers],
    }

    async def receive() -> Message:
        raise AssertionError("nothing that is served here has a body")

    return Request(scope, receive)
