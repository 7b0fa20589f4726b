"""Authentication and authorisation of requests to a node, by the API server, as with a kubelet's webhooks.

A client presents a certificate, which the listener has verified, or a token for a TokenReview. A SubjectAccessReview
about the node and one of its subresources decides what the client may do.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.client import Client
from drachma.runtime import accessreviews
from drachma.runtime.accessreviews import Action, User
from drachma.runtime.clock import Clock

_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_FINE: Final = (("/pods", "pods"), ("/runningpods", "pods"), ("/healthz", "healthz"), ("/configz", "configz"))
_COARSE: Final = (("/stats", "stats"), ("/metrics", "metrics"), ("/logs", "log"))
_SECONDS: Final = 300.0
_REFUSAL_SECONDS: Final = 30.0


class Access:
    """Authenticates and authorises requests, with the clients of nodes."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._reviews: Final = accessreviews.AccessReviews(clock, seconds=_SECONDS, refusal_seconds=_REFUSAL_SECONDS)

    async def user_of(self, client: Client, certificate: Mapping[str, Any] | None, authorization: str) -> User | None:
        """Return the user of a certificate, as Python's ssl describes it, or of a header; None if they name no user.

        A certificate may expire on a connection that stays open.
        """
        if certificate and self._clock.utc().timestamp() < ssl.cert_time_to_seconds(certificate["notAfter"]):
            return accessreviews.user_of_certificate(certificate)
        return await self._reviews.user_of(client, authorization)

    async def may(self, client: Client, user: User, *, node: str, method: str, path: str) -> bool:
        """Return True if a user may make a request to a node. One permitted subresource of the path is enough."""
        for subresource in subresources(path):
            action = Action(
                verb=_VERBS.get(method, ""), version="v1", resource="nodes", name=node, subresource=subresource
            )
            if await self._reviews.may(client, user, action):
                return True
        return False


def subresources(path: str) -> Sequence[str]:
    """Return the subresources that a path stands for, the finest first."""
    fine = [name for prefix, name in _FINE if _is_below(path, prefix)]
    coarse = [name for prefix, name in _COARSE if _is_below(path, prefix)]
    return [*fine, *(coarse or ["proxy"])]


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
