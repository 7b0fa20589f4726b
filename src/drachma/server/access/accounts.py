"""Service accounts as users: user names, groups, and references in tokens."""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

PREFIX: Final = "system:serviceaccount:"
EXTRA: Final = "authentication.kubernetes.io/"
"""Prefix of extra keys under which credentials describe their user."""

AUTHENTICATED: Final = "system:authenticated"
"""Group of all authenticated users."""

_GROUP: Final = "system:serviceaccounts"


class Store(Protocol):
    """Reader of the objects that tokens are bound to."""

    def get(self, key: record.Key) -> record.Record | None: ...


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """Name and uid of an object."""

    name: str = ""
    uid: str = ""


class RefusedTokenError(Exception):
    """A token of this server is not valid; the message is upstream's."""


def username(namespace: str, name: str) -> str:
    """Return the user name of an account."""
    return f"{PREFIX}{namespace}:{name}"


def groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of all accounts of a namespace."""
    return (_GROUP, f"{_GROUP}:{namespace}")


def account(store: Store, namespace: str, name: str) -> record.Record:
    """Return the account of a token."""
    existing = store.get(record.Key("serviceaccounts", namespace, name))
    if existing is None:
        raise RefusedTokenError(f"serviceaccounts {quotation.quote(name)} not found")
    return existing


def account_user(namespace: str, holder: Reference, extra: Mapping[str, str]) -> User:
    """Return the user of an account. ``extra`` has keys without their prefix; empty values are left out."""
    return User(
        name=username(namespace, holder.name),
        uid=holder.uid,
        groups=(*groups(namespace), AUTHENTICATED),
        extra={f"{EXTRA}{key}": (value,) for key, value in extra.items() if value},
    )
