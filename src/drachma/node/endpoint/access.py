"""Who may ask a node what: the API server is asked about both, as a kubelet does with its webhooks.

A client shows a certificate, which the listener has verified, or a token, about which a TokenReview tells. What it may
do is a SubjectAccessReview about the node and one of its subresources.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.client import Client
from drachma.runtime import accessreviews, clock
from drachma.runtime.accessreviews import Action, User

_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_FINE: Final = (("/pods", "pods"), ("/runningpods", "pods"), ("/healthz", "healthz"), ("/configz", "configz"))
_COARSE: Final = (("/stats", "stats"), ("/metrics", "metrics"), ("/logs", "log"))
_SECONDS: Final = 300.0
_REFUSAL_SECONDS: Final = 30.0


class Access:
    """Asks by the clients of nodes."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock: Final = time
        self._reviews: Final = accessreviews.AccessReviews(time, seconds=_SECONDS, refusal_seconds=_REFUSAL_SECONDS)

    async def user_of(self, client: Client, certificate: Mapping[str, Any] | None, authorization: str) -> User | None:
        """Return the user of a certificate, as Python's ssl describes it, or of a header; None if they name no user.

        A certificate may expire on a connection that stays open.
        """
        if certificate and self._clock.utc().timestamp() < ssl.cert_time_to_seconds(certificate["notAfter"]):
            return accessreviews.of_certificate(certificate)
        return await self._reviews.user_of(client, authorization)

    async def may(self, client: Client, user: User, *, node: str, method: str, path: str) -> bool:
        """Whether a user may ask this of a node: one of the subresources that the path stands for is enough."""
        for subresource in subresources(path):
            action = Action(
                verb=_VERBS.get(method, ""), version="v1", resource="nodes", name=node, subresource=subresource
            )
            if await self._reviews.may(client, user, action):
                return True
        return False


def subresources(path: str) -> Sequence[str]:
    """What a path of a node is to authorisers, the finest first."""
    fine = [name for prefix, name in _FINE if _is_below(path, prefix)]
    coarse = [name for prefix, name in _COARSE if _is_below(path, prefix)]
    return [*fine, *(coarse or ["proxy"])]


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
