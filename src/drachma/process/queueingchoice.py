"""Whether queueing runs beside an API server; it is a sixth of what a start would load, so only who wants it does."""

from __future__ import annotations

import pathlib
from typing import Final, NamedTuple

from drachma.process import components
from drachma.server.wire import app


class Chosen(NamedTuple):
    """Queueing as somebody wants it beside a server, or not: what the server has more, and what runs more."""

    is_on: bool
    additions: app.Additions
    components: tuple[components.Component, ...]


NONE: Final = Chosen(is_on=False, additions=app.Additions(), components=())


def chosen(configuration_file: pathlib.Path | None, *, is_on: bool) -> Chosen:
    """Queueing with a configuration from a file, or from the ConfigMap; a file says that it is wanted.

    Raises:
        errors.InvalidValueError: the configuration is refused.
    """
    if not is_on and configuration_file is None:
        return NONE
    from drachma.process import queueing

    return queueing.beside_server(configuration_file)
