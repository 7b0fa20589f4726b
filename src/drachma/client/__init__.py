"""Clients of an API server: one contract, in process or over HTTP.

Write against :class:`Client`. :func:`connect` returns a client of any Kubernetes API server, by kubeconfig or from
inside a cluster; it is made of :mod:`drachma.client.http`. :mod:`drachma.client.local` connects to drachma's own server
in the same process. Only code that composes a process imports these two. Refusals are branches of
:class:`drachma.errors.RefusedError`.
"""

import pathlib
from contextlib import AbstractAsyncContextManager

from drachma.client.protocol import Change, Client, Event, Listing, Selection, Watch
from drachma.client.target import Target

__all__ = ["Change", "Client", "Event", "Listing", "Selection", "Target", "Watch", "connect"]


def connect(
    kubeconfig: pathlib.Path | None = None, *, context: str = "", manager: str = "drachma"
) -> AbstractAsyncContextManager[Client]:
    """Return a client of the API server that kubectl would use, or that a kubeconfig file and context name.

    Inside a cluster without a kubeconfig, the service account of the pod is used. ``manager`` owns the fields that the
    client writes. Raises errors.AccessError if the kubeconfig cannot be read.
    """
    # HTTP is imported when it is used.
    from drachma.client import http, systemclock

    access = http.find_access(kubeconfig, context=context)
    return http.HttpClient(access, clock=systemclock.SystemClock(), manager=manager)
