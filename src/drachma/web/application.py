"""The dashboard as an ASGI application: routes, the user of each request, and pages for errors."""

from __future__ import annotations

import hashlib
import logging
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple
from urllib import parse

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from drachma import errors
from drachma.runtime import clock
from drachma.web import live, page, signin
from drachma.web.page import Page
from drachma.web.pages import claims, devices, playground, pods, queues, reports, summary, whatif
from drachma.web.rendering import Renderer
from drachma.web.security import HEALTH_PATHS, Shield
from drachma.web.sessions import Sessions
from drachma.web.settings import Settings
from drachma.web.signin import NotSignedInError, SignIn

_log = logging.getLogger(__name__)

Handler = Callable[[Page], Awaitable[Response]]

_GET: Final = ("GET",)
_POST: Final = ("POST",)
_ROUTES: Final[tuple[tuple[str, tuple[str, ...], Handler], ...]] = (
    ("/", _GET, summary.show),
    ("/devices", _GET, devices.show),
    ("/devices/map.json", _GET, devices.show_map),
    ("/device", _GET, devices.show_device),
    ("/pods", _GET, pods.show_list),
    ("/pods/{namespace}/{name}", _GET, pods.show),
    ("/pods/{namespace}/{name}/explanation", _GET, pods.explain),
    ("/pods/{namespace}/{name}/delete", ("GET", "POST"), pods.delete),
    ("/claims", _GET, claims.show_list),
    ("/claims/{namespace}/{name}", _GET, claims.show),
    ("/claims/{namespace}/{name}/explanation", _GET, claims.explain),
    ("/claims/{namespace}/{name}/delete", ("GET", "POST"), claims.delete),
    ("/queues", _GET, queues.show),
    ("/queues/estimates", _GET, queues.show_estimates),
    ("/reports", ("GET", "POST"), reports.show),
    ("/workloads/{namespace}/{name}", _GET, queues.show_workload),
    ("/cel", _GET, playground.show),
    ("/cel/evaluation", _GET, playground.evaluate),
    ("/whatif", _GET, whatif.show),
    ("/namespaces", _POST, summary.add_namespace),
)

_ASSETS_FOLDER: Final = pathlib.Path(__file__).with_name("assets")
_MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Dashboard:
    """One dashboard: its sessions and its application."""

    def __init__(self, settings: Settings, *, time: clock.Clock | None = None) -> None:
        self.settings: Final = settings
        self._time: Final = time or clock.SystemClock()
        self.sessions: Final = Sessions(settings, time=self._time)
        self._sign_in: Final = SignIn(settings, self.sessions)
        self._renderer: Final = Renderer()
        self._assets: Final = Assets()
        routes = [Route(path, self._page(handler), methods=methods) for path, methods, handler in _ROUTES]
        starlette = Starlette(
            routes=[
                *routes,
                Route("/live", self._guarded(self._live)),
                Route("/signin", self._guarded(self._show_sign_in), methods=["GET", "POST"]),
                Route("/signout", self._guarded(self._sign_out), methods=["POST"]),
                Route("/assets/{name}", self._assets.respond),
                *(Route(path, _healthy) for path in HEALTH_PATHS),
                Route("/{rest:path}", self._guarded(self._not_found)),
            ],
        )
        self.application: Final[ASGIApp] = Shield(starlette, hosts=settings.hosts)

    def _page(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            answer = await self._sign_in.use_start_key(request)
            if answer is not None:
                return answer
            return await handler(await self._open(request))

        return self._guarded(respond)

    async def _open(self, request: Request) -> Page:
        """Return the page of a request's user. Raises NotSignedInError, and errors of the API server."""
        view = await self.sessions.view(self._sign_in.identity(request))
        if view.is_rejected:
            raise NotSignedInError
        await view.wait_ready()
        return Page(
            request,
            view,
            session=self._sign_in.session(request),
            settings=self.settings,
            renderer=self._renderer,
            now=self._time.utc(),
            asset_version=self._assets.version,
        )

    def _guarded(self, respond: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that answers errors with pages, and never with a traceback."""

        async def guarded(request: Request) -> Response:
            try:
                return await respond(request)
            except NotSignedInError:
                return self._ask_to_sign_in(request)
            except errors.UnauthorizedError:
                return self._error(request, 401, "The API server does not accept these credentials", "Sign in again.")
            except (errors.InvalidValueError, errors.DecodeError) as error:
                return self._error(request, 400, "This address or form cannot be used", str(error))
            except (errors.ForbiddenError, errors.AccessError) as error:
                return self._error(request, 403, "You may not do this", str(error))
            except errors.ObjectNotFoundError as error:
                return self._error(request, 404, "There is no such thing", str(error))
            except (errors.UnreachableError, errors.RefusedError) as error:
                return self._error(request, 502, "The API server does not answer", str(error))
            except Exception:
                _log.exception("dashboard: %s %s", request.method, request.url.path)
                return self._error(request, 500, "The dashboard failed", "Its log has the details.")

        return guarded

    def _error(self, request: Request, status: int, title: str, message: str) -> Response:
        if request.headers.get("accept", "").startswith("application/json"):
            return JSONResponse({"error": message}, status_code=status)
        return self._plain(request, "error.html", status=status, title=title, message=message)

    def _plain(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """Return a page without a user."""
        chrome = page.chrome(request, self.settings, asset_version=self._assets.version, now=self._time.utc())
        return HTMLResponse(self._renderer.page(template, {**chrome, **context}), status_code=status)

    def _ask_to_sign_in(self, request: Request) -> Response:
        if request.url.path == "/live" or request.headers.get("accept", "").startswith("application/json"):
            return PlainTextResponse("sign in first\n", status_code=401)
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        next_page = "" if target == "/" else "?" + parse.urlencode({"next": target})
        return RedirectResponse(f"/signin{next_page}", status_code=303)

    async def _show_sign_in(self, request: Request) -> Response:
        next_page = signin.safe_path(request.query_params.get("next", "/"))
        problem = ""
        if request.method == "POST":
            try:
                cookie = await self._sign_in.sign_in(await signin.read_form(request))
                answer = RedirectResponse(next_page, status_code=303)
                self._sign_in.set_cookie(answer, cookie)
                return answer
            except errors.UnauthorizedError:
                problem = "The API server does not know this token or certificate."
            except (errors.AccessError, errors.UnreachableError) as error:
                problem = str(error)
        return self._plain(
            request,
            "signin.html",
            status=401 if problem else 200,
            problem=problem,
            next_page=next_page,
            has_start_key=bool(self.settings.start_key),
        )

    async def _sign_out(self, request: Request) -> Response:
        signin.check_form(await signin.read_form(request), self._sign_in.session(request))
        return await self._sign_in.sign_out(request)

    async def _live(self, request: Request) -> Response:
        return live.respond((await self._open(request)).view)

    async def _not_found(self, request: Request) -> Response:
        return self._error(request, 404, "There is no such page", request.url.path[:200])


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


class _Asset(NamedTuple):
    content: bytes
    media_type: str
    tag: str


class Assets:
    """Style sheet, scripts and icon: read once, and cached by browsers until their content changes."""

    def __init__(self) -> None:
        self._assets: Final = {
            path.name: _Asset(content := path.read_bytes(), _MEDIA_TYPES[path.suffix], _digest(content))
            for path in sorted(_ASSETS_FOLDER.iterdir())
            if path.suffix in _MEDIA_TYPES
        }
        self.version: Final = _digest("".join(asset.tag for asset in self._assets.values()).encode())
        """Part of the addresses of assets, which changes with any of them."""

    async def respond(self, request: Request) -> Response:
        """Return an asset."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None:
            return PlainTextResponse("there is no such file\n", status_code=404)
        # Modules import each other by plain names, so browsers ask again and are told that nothing has changed.
        headers = {"ETag": f'"{asset.tag}"', "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
