"""The scheduler: which node a pod goes to and which devices its claims get, and everything written for that.

:class:`Scheduler` runs next to informers on any client. The decision itself (:mod:`drachma.scheduler.cycle`) is pure
and can be asked without writing anything.
"""

from drachma.scheduler.scheduler import Scheduler
from drachma.scheduler.settings import Settings

__all__ = ["Scheduler", "Settings"]
