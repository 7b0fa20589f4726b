"""ControllerRevision: a past state of a stateful set or a daemon set."""

from drachma.api import meta
from drachma.api.struct import ZERO_INT, Int64


class ControllerRevision(meta.Object, frozen=True, kw_only=True):
    """``apps`` ControllerRevision, namespaced."""

    data: meta.Opaque = None
    """Patch that restores the state."""
    revision: Int64 = ZERO_INT
