"""Place at which API servers reach webhooks: a URL, or a Service."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple, TypeAlias

from drachma import errors
from drachma.values import names


class Service(NamedTuple):
    """Service by which API servers reach webhooks."""

    namespace: str
    name: str
    port: int = 443

    @classmethod
    def parse(cls, text: str) -> Service:
        """Return the Service of ``NAMESPACE/NAME`` or ``NAMESPACE/NAME:PORT``. Raises errors.InvalidValueError."""
        namespace, slash, service = text.partition("/")
        name, colon, port = service.partition(":")
        if not slash or names.dns1123_label(namespace) or names.dns1123_label(name):
            raise errors.InvalidValueError(f"service {text!r}: expected NAMESPACE/NAME or NAMESPACE/NAME:PORT")
        if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise errors.InvalidValueError(f"service {text!r}: {port!r}: expected a port from 1 to 65535")
        return cls(namespace, name, int(port)) if colon else cls(namespace, name)

    @property
    def text(self) -> str:
        """The Service as ``parse`` reads it."""
        return f"{self.namespace}/{self.name}:{self.port}"

    @property
    def host(self) -> str:
        """Name that the serving certificate must have."""
        return f"{self.name}.{self.namespace}.svc"


Place: TypeAlias = str | Service
"""A URL without path, or a Service."""


def client_config(place: Place, path: str, *, authority: bytes) -> dict[str, Any]:
    """Return the ``clientConfig`` of a webhook with this path."""
    bundle = {"caBundle": base64.b64encode(authority).decode()}
    if isinstance(place, Service):
        service = {"namespace": place.namespace, "name": place.name, "port": place.port, "path": path}
        return {"service": service, **bundle}
    return {"url": f"{place}{path}", **bundle}
