"""How components talk to an API server: one contract, in process or over HTTP.

Write against :class:`Client`. :mod:`drachma.client.http` speaks to any Kubernetes API server by kubeconfig or from
inside a cluster, :mod:`drachma.client.local` to drachma's own in the same process; both are imported by who wires
a process together. Refusals are branches of :class:`drachma.errors.RefusedError`.
"""

from drachma.client.protocol import Change, Client, Event, Listing, Selection, Watch
from drachma.client.target import Target

__all__ = ["Change", "Client", "Event", "Listing", "Selection", "Target", "Watch"]
