"""The scheduling cycle: from a unit of scheduling and a snapshot to a decision. Nothing is written or changed here.

A unit (:mod:`~drachma.scheduler.cycle.units`) is a pod, or the pods of a gang. :class:`Cycle` places one pod. Gangs are
placed by :mod:`~drachma.scheduler.cycle.gangsearch`, which asks the cycle for one pod after the other on forks.
The scheduler's loop, simulations and replays all decide here.
"""

from drachma.scheduler.cycle.podcycle import Cycle

__all__ = ["Cycle"]
