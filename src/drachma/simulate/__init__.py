"""What if: pods placed in thought, by the very scheduler that places them for real.

:class:`ClusterState` is a cluster as plain state; :class:`Simulation` is one to be asked and changed: forked, and given
more nodes and pods. :mod:`drachma.simulate.growth` says which nodes would help pods that wait,
:mod:`drachma.simulate.shrinkage` which nodes could go, :mod:`drachma.simulate.reports` what is in use.
"""

from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.nodegroup import NodeGroup
from drachma.simulate.simulation import Placement, Schedule, Simulation, Waiting

__all__ = ["ClusterState", "NodeGroup", "Placement", "Schedule", "Simulation", "Waiting"]
