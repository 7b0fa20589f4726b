"""Who may ask a node what: the API server is asked about both, as a kubelet does with its webhooks.

A client shows a certificate, which the listener has verified, or a token, about which a TokenReview tells. What it may
do is a SubjectAccessReview about the node and one of its subresources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_FINE: Final = (("/pods", "pods"), ("/runningpods", "pods"), ("/healthz", "healthz"), ("/configz", "configz"))
_COARSE: Final = (("/stats", "stats"), ("/metrics", "metrics"), ("/logs", "log"))
_KEPT_SECONDS: Final = 300.0
_KEPT_REFUSAL_SECONDS: Final = 30.0
_MOST_KEPT: Final = 1024


class User(msgspec.Struct, frozen=True):
    """Somebody who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class Access:
    """Remembers for a while what it was told, within bounds."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._users: dict[str, tuple[float, User | None]] = {}
        self._verdicts: dict[tuple[Any, ...], tuple[float, bool]] = {}

    async def user_of(self, client: Client, certificate: Mapping[str, Any] | None, authorization: str) -> User | None:
        """Who shows a certificate, as Python's ssl describes it, or a header; None for nobody who is known."""
        if certificate:
            return _of_certificate(certificate)
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
        user: User | None = None
        if status.get("authenticated"):
            told: Mapping[str, Any] = status.get("user") or {}
            user = User(str(told.get("username", "")), tuple(told.get("groups") or ()), str(told.get("uid", "")))
        _keep(self._users, token, (now + _KEPT_REFUSAL_SECONDS, user))
        return user

    async def may(self, client: Client, user: User, *, node: str, method: str, path: str) -> bool:
        """Whether a user may ask this of a node: one of the subresources that the path stands for is enough."""
        for subresource in subresources(path):
            if await self._may(client, user, node=node, verb=_VERBS.get(method, ""), subresource=subresource):
                return True
        return False

    async def _may(self, client: Client, user: User, *, node: str, verb: str, subresource: str) -> bool:
        key = (user, node, verb, subresource)
        now = self._clock.monotonic()
        kept = self._verdicts.get(key)
        if kept is not None and kept[0] > now:
            return kept[1]
        wanted = {"resource": "nodes", "version": "v1", "name": node, "verb": verb, "subresource": subresource}
        spec = {"user": user.name, "groups": list(user.groups), "uid": user.uid, "resourceAttributes": wanted}
        answer = await client.create_document(
            _ACCESS_REVIEW,
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
        )
        is_allowed = bool((answer.get("status") or {}).get("allowed"))
        _keep(self._verdicts, key, (now + (_KEPT_SECONDS if is_allowed else _KEPT_REFUSAL_SECONDS), is_allowed))
        return is_allowed


def subresources(path: str) -> Sequence[str]:
    """What a path of a node is to authorisers, the finest first."""
    fine = [name for prefix, name in _FINE if _is_below(path, prefix)]
    coarse = [name for prefix, name in _COARSE if _is_below(path, prefix)]
    return [*fine, *(coarse or ["proxy"])]


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def _of_certificate(certificate: Mapping[str, Any]) -> User | None:
    fields = [pair for group in certificate.get("subject") or () for pair in group]
    name = next((value for key, value in fields if key == "commonName"), "")
    groups = tuple(value for key, value in fields if key == "organizationName")
    return User(name, (*groups, "system:authenticated")) if name else None


def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _MOST_KEPT:
        del memory[next(iter(memory))]
    memory[key] = value
