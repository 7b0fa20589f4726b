"""Tokens in secrets, which upstream calls legacy: without expiry and audience, valid while the secret exists.

A controller fills secrets of type ``kubernetes.io/service-account-token`` that name an account.
"""

import base64
import hmac
from typing import Any, Final

import msgspec

from drachma.server.access.accounts import Reference, RefusedTokenError, Store, account, account_user, username
from drachma.server.user import User
from drachma.store import record

ISSUER: Final = "kubernetes/serviceaccount"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
"""Label of a secret whose token is no longer valid."""

_CLAIM: Final = "kubernetes.io/serviceaccount/"
_INVALIDATED: Final = "Token has been invalidated"


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Claims of a token in a secret."""

    iss: str = ""
    sub: str = ""
    namespace: str = msgspec.field(name=f"{_CLAIM}namespace", default="")
    secret: str = msgspec.field(name=f"{_CLAIM}secret.name", default="")
    account: str = msgspec.field(name=f"{_CLAIM}service-account.name", default="")
    account_uid: str = msgspec.field(name=f"{_CLAIM}service-account.uid", default="")


def claims(namespace: str, holder: Reference, *, secret: str) -> dict[str, Any]:
    """Return the claims of a token for a secret."""
    return {
        "iss": ISSUER,
        f"{_CLAIM}namespace": namespace,
        f"{_CLAIM}secret.name": secret,
        f"{_CLAIM}service-account.name": holder.name,
        f"{_CLAIM}service-account.uid": holder.uid,
        "sub": username(namespace, holder.name),
    }


def user(claims: Claims) -> User:
    """Return the user of a token in a secret."""
    return account_user(claims.namespace, Reference(claims.account, claims.account_uid), {})


def check(store: Store, claims: Claims, *, token: str) -> None:
    """Raise a RefusedTokenError if the secret does not hold the token any more."""
    _check_complete(claims)
    namespace, name = claims.namespace, claims.account
    secret = store.get(record.Key("secrets", namespace, claims.secret))
    if secret is None or "deletionTimestamp" in secret.value["metadata"]:
        raise RefusedTokenError(_INVALIDATED)
    content = (secret.value.get("data") or {}).get("token", "")
    if not hmac.compare_digest(content.encode(), base64.b64encode(token.encode())):
        raise RefusedTokenError("Token does not match server's copy")
    metadata = account(store, namespace, name).value["metadata"]
    if "deletionTimestamp" in metadata:
        raise RefusedTokenError(f"ServiceAccount {namespace}/{name} has been deleted")
    if metadata["uid"] != claims.account_uid:
        raise RefusedTokenError(f"ServiceAccount UID ({metadata['uid']}) does not match claim ({claims.account_uid})")
    if (secret.value["metadata"].get("labels") or {}).get(INVALID_SINCE):
        raise RefusedTokenError(
            f"the token in secret {namespace}/{claims.secret} for service account {namespace}/{name} has been marked "
            "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
            f"'{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )


def _check_complete(claims: Claims) -> None:
    for value, title in (
        (claims.namespace, "namespace"),
        (claims.secret, "secretName"),
        (claims.account, "serviceAccountName"),
        (claims.account_uid, "serviceAccountUID"),
    ):
        if not value:
            raise RefusedTokenError(f"{title} claim is missing")
    if claims.sub != username(claims.namespace, claims.account):
        raise RefusedTokenError("sub claim is invalid")
