"""Service accounts as users: their names and groups, and how tokens refer to them."""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

PREFIX: Final = "system:serviceaccount:"
EXTRA: Final = "authentication.kubernetes.io/"
"""What keys begin with under which credentials say more about their user."""

AUTHENTICATED: Final = "system:authenticated"
"""The group of all who have shown who they are."""

_GROUP: Final = "system:serviceaccounts"


class Store(Protocol):
    """Where the objects are that tokens are bound to."""

    def get(self, key: record.Key) -> record.Record | None: ...


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object, and which one of that name."""

    name: str = ""
    uid: str = ""


class RefusedTokenError(Exception):
    """A token is one of ours and no good; the message is upstream's."""


def username(namespace: str, name: str) -> str:
    """The name that an account has as a user."""
    return f"{PREFIX}{namespace}:{name}"


def groups(namespace: str) -> tuple[str, ...]:
    """The groups that all accounts of a namespace are in."""
    return (_GROUP, f"{_GROUP}:{namespace}")


def account(store: Store, namespace: str, name: str) -> record.Record:
    """The account that a token says it is of."""
    stored = store.get(record.Key("serviceaccounts", namespace, name))
    if stored is None:
        raise RefusedTokenError(f"serviceaccounts {quotation.quote(name)} not found")
    return stored


def account_user(namespace: str, holder: Reference, extra: Mapping[str, str]) -> User:
    """The user that an account is; ``extra`` by the last parts of its keys, of which empty ones are left out."""
    return User(
        name=username(namespace, holder.name),
        uid=holder.uid,
        groups=(*groups(namespace), AUTHENTICATED),
        extra={f"{EXTRA}{key}": (value,) for key, value in extra.items() if value},
    )
