"""Assets: style sheet, scripts and icon, read once, and cached by browsers until their content changes."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_FOLDER: Final = pathlib.Path(__file__).with_name("assets")
_MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class _Asset(NamedTuple):
    content: bytes
    media_type: str
    tag: str


class Assets:
    """All files of the assets folder."""

    def __init__(self) -> None:
        self._assets: Final = {
            path.name: _Asset(content := path.read_bytes(), _MEDIA_TYPES[path.suffix], _digest(content))
            for path in sorted(_FOLDER.iterdir())
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
