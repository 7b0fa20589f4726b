"""The scheduler: chooses a node for each pod and devices for its claims, and writes both.

:class:`drachma.scheduler.scheduler.Scheduler` runs next to informers on any client. The decision itself
(:mod:`drachma.scheduler.cycle`) is pure: simulation imports it without the scheduler around it.
"""

from drachma.scheduler.settings import Settings

__all__ = ["Settings"]
