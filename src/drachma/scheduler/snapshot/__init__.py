"""The cluster as decisions see it: nodes with their pods, devices, claims and nominations; kept up to date, and forked.

:class:`Snapshot` is all of it. It knows no plugin.
"""

from drachma.scheduler.snapshot.snapshot import Snapshot

__all__ = ["Snapshot"]
