"""Users of calls."""

from collections.abc import Mapping

import msgspec


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Authenticated or impersonated user of a call; ``extra`` has further attributes from its credentials."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}
