"""Bootstrap tokens, which admit new nodes and users to a cluster, and the secrets in ``kube-system`` that hold them.

The API server authenticates by them. A controller deletes expired ones.
"""

import base64
import binascii
import datetime as dt
import re
from collections.abc import Mapping
from typing import Final

TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
NAME_PREFIX: Final = "bootstrap-token-"
USER_PREFIX: Final = "system:bootstrap:"
GROUP: Final = "system:bootstrappers"

_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def parse(token: str) -> tuple[str, str] | None:
    """Return the public and the secret part of a token; None if the text has another form."""
    match = _TOKEN.fullmatch(token)
    return (match[1], match[2]) if match is not None else None


def value(data: Mapping[str, str], key: str) -> str:
    """Return the decoded value of a key in a secret's data; empty if it is absent."""
    try:
        return base64.b64decode(data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def seconds_left(data: Mapping[str, str], now: dt.datetime) -> float | None:
    """Return the seconds until the token expires: None for never, at most zero if it has expired or is malformed."""
    text = value(data, "expiration")
    if not text:
        return None
    try:
        end = dt.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (end - now).total_seconds() if end.tzinfo is not None else 0.0


def groups(data: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the groups that the token authenticates as; None if the secret names one that is not allowed."""
    extra = value(data, "auth-extra-groups")
    names = extra.split(",") if extra else []
    if not all(map(_EXTRA_GROUP.fullmatch, names)):
        return None
    return tuple(sorted({GROUP, *names}))
