"""A small HTTPS client that speaks to a server process: one connection, requests one after the other."""

import http.client
import json
import pathlib
import ssl
import urllib.parse
from typing import Any, NamedTuple, Protocol

from tests import patience


class Server(Protocol):
    """Server to connect to, and a token of its administrator."""

    url: str
    token: str
    authority: pathlib.Path


class Answer(NamedTuple):
    code: int
    body: Any


class Wire:
    """One connection to a server."""

    def __init__(self, server: Server, *, token: str | None = None, certificate: tuple[str, str] | None = None) -> None:
        context = ssl.create_default_context(cafile=str(server.authority))
        if certificate is not None:
            context.load_cert_chain(*certificate)
        self._token = server.token if token is None else token
        place = urllib.parse.urlsplit(server.url)
        self.connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, context=context, timeout=patience.SECONDS
        )

    def call(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Answer:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        response = self.open(method, path, data, content_type=content_type)
        raw = response.read()
        try:
            return Answer(response.status, json.loads(raw))
        except ValueError:
            return Answer(response.status, raw.decode())

    def open(
        self, method: str, path: str, data: bytes | None = None, *, content_type: str = "application/json"
    ) -> http.client.HTTPResponse:
        """A response whose body is still to be read, such as a watch."""
        headers = {"Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self.connection.request(method, path, body=data, headers=headers)
        return self.connection.getresponse()

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
