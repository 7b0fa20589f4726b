"""Podman's command: what is asked of it, in which words, and what it answers."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.node.runtimes.child import Child, Finished, run

CALL_SECONDS: Final = 60.0

_PODMAN: Final = ("podman", "--runtime", "runc")
_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


async def call(*words: str, seconds: float | None = CALL_SECONDS) -> Finished:
    """Has podman do something, and waits for its answer, for so many seconds or as long as it takes.

    Raises:
        errors.NodeError: podman cannot be started.
    """
    try:
        return await run([*_PODMAN, *words], environment=_ENVIRONMENT, seconds=seconds)
    except OSError as error:
        raise errors.NodeError(f"podman cannot be started: {error.strerror}: {error.filename}") from error


def begin(*words: str, has_terminal: bool = False, has_input: bool = False) -> Child:
    """Begins something that has streams, such as a command in a container.

    Raises:
        OSError: podman cannot be started.
    """
    return Child([*_PODMAN, *words], environment=_ENVIRONMENT, has_terminal=has_terminal, has_input=has_input)
