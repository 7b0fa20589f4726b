"""Authentication and authorisation by the API server: TokenReviews and SubjectAccessReviews.

Servers next to an API server (nodes, extensions of its API) leave both to it, as upstream does. Answers are cached for
a while, within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.client import Client, target
from drachma.runtime.clock import Clock

_TOKEN_REVIEW: Final = target.metadata_of(
    "authentication.k8s.io", "v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)
_ACCESS_REVIEW: Final = target.metadata_of(
    "authorization.k8s.io", "v1", plural="subjectaccessreviews", kind="SubjectAccessReview", namespaced=False
)
AUTHENTICATED: Final = "system:authenticated"
_MOST_KEPT: Final = 1024


class User(msgspec.Struct, frozen=True):
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to authorise: a verb on a resource, or with a ``path`` on a non-resource URL."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class AccessReviews:
    """Cached answers of an API server. Each counts for some seconds, whichever client asked."""

    def __init__(self, clock: Clock, *, seconds: float, refusal_seconds: float) -> None:
        """``refusal_seconds`` is the time for which refusals and the users of tokens are cached."""
        self._clock: Final = clock
        self._seconds: Final = seconds
        self._refusal_seconds: Final = refusal_seconds
        self._users: Final[dict[str, tuple[float, User | None]]] = {}
        self._verdicts: Final[dict[tuple[User, Action], tuple[float, bool]]] = {}

    async def user_of(self, client: Client, authorization: str) -> User | None:
        """Return the user of the token in an Authorization header, or None."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        now = self._clock.monotonic()
        cached = self._users.get(token)
        if cached is not None and cached[0] > now:
            return cached[1]
        answer = await client.create_document(
            _TOKEN_REVIEW,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
        )
        status: Mapping[str, Any] = answer.get("status") or {}
        user = _user(status.get("user") or {}) if status.get("authenticated") else None
        _keep(self._users, token, (now + self._refusal_seconds, user))
        return user

    async def may(self, client: Client, user: User, action: Action) -> bool:
        """Return True if a user is allowed an action."""
        now = self._clock.monotonic()
        cached = self._verdicts.get((user, action))
        if cached is not None and cached[0] > now:
            return cached[1]
        attributes = {key: value for key, value in msgspec.to_builtins(action).items() if value}
        field = "nonResourceAttributes" if action.path else "resourceAttributes"
        extra = {key: list(values) for key, values in user.extra}
        spec = {"user": user.name, "groups": list(user.groups), "uid": user.uid, "extra": extra, field: attributes}
        answer = await client.create_document(
            _ACCESS_REVIEW,
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
        )
        is_allowed = bool((answer.get("status") or {}).get("allowed"))
        seconds = self._seconds if is_allowed else self._refusal_seconds
        _keep(self._verdicts, (user, action), (now + seconds, is_allowed))
        return is_allowed


def user_of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Return the user of a verified certificate, as Python's ssl describes it, or None without a name."""
    fields = [pair for group in certificate.get("subject") or () for pair in group]
    # As Go: of several common names the last counts.
    name = next((value for key, value in reversed(fields) if key == "commonName"), "")
    groups = tuple(value for key, value in fields if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None


def _user(user: Mapping[str, Any]) -> User:
    extra = tuple((str(key), tuple(map(str, values))) for key, values in sorted((user.get("extra") or {}).items()))
    return User(str(user.get("username", "")), tuple(user.get("groups") or ()), str(user.get("uid", "")), extra)


def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _MOST_KEPT:
        del memory[next(iter(memory))]
    memory[key] = value
