"""ControllerRevision: what a stateful set or a daemon set looked like at some time."""

from drachma.api import meta
from drachma.api.struct import ZERO_INT, Int64


class ControllerRevision(meta.Object, frozen=True, kw_only=True):
    """``apps`` ControllerRevision, namespaced."""

    data: meta.Opaque = None
    """A patch that brings the workload back to that state."""
    revision: Int64 = ZERO_INT
