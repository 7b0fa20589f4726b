"""Clients of an API server: one contract, in process or over HTTP.

Write against :class:`Client`. :mod:`drachma.client.http` connects to any Kubernetes API server by kubeconfig or from
inside a cluster, :mod:`drachma.client.local` to drachma's own server in the same process. Only code that composes a
process imports these two. Refusals are branches of :class:`drachma.errors.RefusedError`.
"""

from drachma.client.protocol import Change, Client, Event, Listing, Selection, Watch
from drachma.client.target import Target

__all__ = ["Change", "Client", "Event", "Listing", "Selection", "Target", "Watch"]
