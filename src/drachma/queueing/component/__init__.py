"""The component around queueing's decisions: it reads objects, has them decided, and writes down what became of them.

Everything that decides stands in :mod:`drachma.queueing` and knows nothing of this package. Modules here keep caches
and queues, and are thin: what an object becomes is a question to the core.
"""

from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.component import QueueingComponent
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.reviews import Reviews

__all__ = ["ActiveConfiguration", "PendingView", "QueueingComponent", "Reviews"]
