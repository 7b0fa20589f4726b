"""The component around queueing's decisions: it reads objects, has the pure rooms decide, and writes the results.

The rooms that decide do not know this package. Modules here keep caches and work queues, and are thin.
"""

from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.component import QueueingComponent
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.remoteclusters import Connect
from drachma.queueing.component.reviews import Reviews

__all__ = ["ActiveConfiguration", "Connect", "PendingView", "QueueingComponent", "Reviews"]
