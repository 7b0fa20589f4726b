"""Who somebody is, and what they may do, asked of the API server: TokenReviews and SubjectAccessReviews.

Whatever serves requests beside an API server (nodes, extensions of its API) leaves both to it, as upstream does.
Answers are remembered for a while, within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.client import Client, target
from drachma.runtime import clock

_TOKEN_REVIEW: Final = target.metadata_of(
    "authentication.k8s.io", "v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)
_ACCESS_REVIEW: Final = target.metadata_of(
    "authorization.k8s.io", "v1", plural="subjectaccessreviews", kind="SubjectAccessReview", namespaced=False
)
AUTHENTICATED: Final = "system:authenticated"
_MOST_KEPT: Final = 1024


class User(msgspec.Struct, frozen=True):
    """Somebody who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody wants to do to a resource, or with a ``path`` to what is no resource."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class AccessReviews:
    """What an API server was asked and answered, by whichever client; it is asked again after some seconds."""

    def __init__(self, time: clock.Clock, *, seconds: float, refusal_seconds: float) -> None:
        """``refusal_seconds`` is how long refusals count, and who a token stands for."""
        self._clock: Final = time
        self._seconds: Final = seconds
        self._refusal_seconds: Final = refusal_seconds
        self._users: Final[dict[str, tuple[float, User | None]]] = {}
        self._verdicts: Final[dict[tuple[User, Action], tuple[float, bool]]] = {}

    async def user_of(self, client: Client, authorization: str) -> User | None:
        """Who the token of an Authorization header stands for; None for nobody."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        now = self._clock.monotonic()
        kept = self._users.get(token)
        if kept is not None and kept[0] > now:
            return kept[1]
        answer = await client.create_document(
            _TOKEN_REVIEW,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
        )
        status: Mapping[str, Any] = answer.get("status") or {}
        user = _told(status.get("user") or {}) if status.get("authenticated") else None
        _keep(self._users, token, (now + self._refusal_seconds, user))
        return user

    async def may(self, client: Client, user: User, action: Action) -> bool:
        """Whether somebody may do something."""
        now = self._clock.monotonic()
        kept = self._verdicts.get((user, action))
        if kept is not None and kept[0] > now:
            return kept[1]
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


def of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Who a verified certificate stands for, as Python's ssl describes it; None without a name."""
    fields = [pair for group in certificate.get("subject") or () for pair in group]
    # As Go: of several common names the last counts.
    name = next((value for key, value in reversed(fields) if key == "commonName"), "")
    groups = tuple(value for key, value in fields if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None


def _told(user: Mapping[str, Any]) -> User:
    extra = tuple((str(key), tuple(map(str, values))) for key, values in sorted((user.get("extra") or {}).items()))
    return User(str(user.get("username", "")), tuple(user.get("groups") or ()), str(user.get("uid", "")), extra)


def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _MOST_KEPT:
        del memory[next(iter(memory))]
    memory[key] = value
