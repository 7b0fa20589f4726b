"""Defragmentation: the fewest moves of pods that bring back whole nodes or whole devices, and carrying them out.

- ``wholes``: nodes and devices that can be whole, and the claims and pods that keep them from it
- ``movability``: reasons why a pod stays where it is
- ``protection``: taint rules that keep new allocations away from devices
- ``moves``: one pod that gets other devices in a simulated cluster
- ``search``: the plan
- ``carrying``: the moves as evictions in a running cluster, one by one
"""

from drachma.simulate.defragmentation.carrying import Carrier, SurpriseError
from drachma.simulate.defragmentation.moves import Move
from drachma.simulate.defragmentation.search import Plan, Planner
from drachma.simulate.defragmentation.wholes import Goal, Whole

__all__ = ["Carrier", "Goal", "Move", "Plan", "Planner", "SurpriseError", "Whole"]
