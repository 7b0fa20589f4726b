"""Access of queueing to other clusters, by their kubeconfigs."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from drachma.client import http, kubeconfig, protocol
from drachma.runtime import clock

_MANAGER: Final = "kueue"


@contextlib.asynccontextmanager
async def connect(content: bytes, name: str) -> AsyncIterator[protocol.Client]:
    """Yield a client for the current context of a kubeconfig. Raises errors.AccessError."""
    access = kubeconfig.load_content(content, name=name)
    async with http.HttpClient(access, clock=clock.SystemClock(), manager=_MANAGER) as client:
        yield client
