"""Choice of queueing in the process of an API server. Queueing is imported only if it is chosen."""

from __future__ import annotations

import pathlib
from typing import Final, NamedTuple

from drachma.process import components
from drachma.server.wire import app


class QueueingChoice(NamedTuple):
    """Queueing in the process of a server: its additions to the server, and its components; both may be empty."""

    is_on: bool
    additions: app.Additions
    components: tuple[components.Component, ...]


NONE: Final = QueueingChoice(is_on=False, additions=app.Additions(), components=())


def choose(configuration_file: pathlib.Path | None, *, is_on: bool) -> QueueingChoice:
    """Return queueing configured by a file or by the ConfigMap. A file turns queueing on.

    Raises:
        errors.InvalidValueError: the configuration is refused.
    """
    if not is_on and configuration_file is None:
        return NONE
    from drachma.process import queueing

    return queueing.configure_in_server(configuration_file)
