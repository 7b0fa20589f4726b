"""Recordings: the decisions of a scheduler and the state that they rest on, in a file, so that they can be replayed.

:class:`Recorder` listens, :class:`RecordFile` writes, and :mod:`drachma.scheduler.recording.recordlines` is the format.
"""

from drachma.scheduler.recording.recorder import Recorder
from drachma.scheduler.recording.recordfile import RecordFile

__all__ = ["RecordFile", "Recorder"]
