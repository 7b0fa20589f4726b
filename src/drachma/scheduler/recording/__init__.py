"""Recordings: what a scheduler decided and on what it knew, kept in a file, so that it can be repeated elsewhere.

:class:`Recorder` listens, :class:`RecordFile` writes, and :mod:`drachma.scheduler.recording.recordlines` is the form.
"""

from drachma.scheduler.recording.recorder import Recorder
from drachma.scheduler.recording.recordfile import RecordFile

__all__ = ["RecordFile", "Recorder"]
