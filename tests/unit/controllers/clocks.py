"""The clock of tests of controllers."""

from drachma.testing.manualclock import START, ManualClock, settle

__all__ = ["START", "ManualClock", "settle"]
