"""Bootstrap tokens: how secrets in ``kube-system`` hold them, by which nodes and people first come into a cluster.

The API server lets in by them; a controller deletes those whose time is over.
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
    """The public and the secret part of a token; None for a text of another form."""
    match = _TOKEN.fullmatch(token)
    return (match[1], match[2]) if match is not None else None


def value(data: Mapping[str, str], key: str) -> str:
    """What a secret's data say under a key, in plain text; empty where they say nothing."""
    try:
        return base64.b64decode(data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def seconds_left(data: Mapping[str, str], now: dt.datetime) -> float | None:
    """How long the token of a secret is good: None is for ever, and zero or less is over. Unreadable times are over."""
    text = value(data, "expiration")
    if not text:
        return None
    try:
        end = dt.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (end - now).total_seconds() if end.tzinfo is not None else 0.0


def groups(data: Mapping[str, str]) -> tuple[str, ...] | None:
    """The groups of who shows the token, by name; None where the secret names one that it cannot give."""
    extra = value(data, "auth-extra-groups")
    names = extra.split(",") if extra else []
    if not all(map(_EXTRA_GROUP.fullmatch, names)):
        return None
    return tuple(sorted({GROUP, *names}))
