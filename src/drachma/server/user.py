"""Who makes a call, as the doors have found out and everything behind them sees it."""

from collections.abc import Mapping

import msgspec


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a call; ``extra`` is what else its credentials say about it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}
