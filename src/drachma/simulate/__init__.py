"""Simulation: what-if questions, answered by the scheduler that places pods for real.

:class:`ClusterState` is a cluster as a value. :class:`Simulation` is a cluster that can be changed and forked.
:mod:`drachma.simulate.growth` plans new nodes for pending pods, :mod:`drachma.simulate.shrinkage` finds nodes to
remove, and :mod:`drachma.simulate.reports` measures usage.
"""

from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.nodegroup import NodeGroup
from drachma.simulate.simulation import Placement, Schedule, Simulation, Waiting

__all__ = ["ClusterState", "NodeGroup", "Placement", "Schedule", "Simulation", "Waiting"]
