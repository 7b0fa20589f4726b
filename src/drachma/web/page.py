"""A page under way: the request, its user's view, and the means to answer."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse

from drachma.web.query import Query
from drachma.web.rendering import Renderer
from drachma.web.sessions import Session
from drachma.web.settings import Settings
from drachma.web.signin import THEME_COOKIE
from drachma.web.userview import UserView

_THEMES: Final = frozenset({"light", "dark"})


class Page:
    """One request of a signed-in user."""

    def __init__(
        self,
        request: Request,
        view: UserView,
        *,
        session: Session | None,
        settings: Settings,
        renderer: Renderer,
        now: dt.datetime,
        asset_version: str,
    ) -> None:
        self.request: Final = request
        self.view: Final = view
        self.session: Final = session
        self.settings: Final = settings
        self.now: Final = now
        self._renderer: Final = renderer
        self._asset_version: Final = asset_version

    def query(self, *allowed: str) -> Query:
        """Return the checked parameters of the request. Raises errors.InvalidValueError for others."""
        return Query(self.request, allowed)

    def render(self, template: str, *, topics: str = "", status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page. ``topics`` are the parts of the model that it shows, separated by spaces."""
        content = self._renderer.page(
            template,
            {
                **chrome(self.request, self.settings, asset_version=self._asset_version, now=self.now),
                "view": self.view,
                "user": self.view.user,
                "form_token": self.session.form_token if self.session is not None else "",
                "has_session": self.session is not None,
                "topics": topics,
                **context,
            },
        )
        return HTMLResponse(content, status_code=status)


def chrome(request: Request, settings: Settings, *, asset_version: str, now: dt.datetime) -> dict[str, Any]:
    """Return the variables that every page has."""
    theme = request.cookies.get(THEME_COOKIE, "")
    return {
        "path": request.url.path,
        "has_query": bool(request.url.query),
        "theme": theme if theme in _THEMES else "",
        "cluster": settings.cluster_name or settings.access.server.partition("://")[2],
        "assets": f"?v={asset_version}",
        "now": now,
    }
