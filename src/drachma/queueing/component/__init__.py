"""The component around queueing's decisions: it reads objects, has the pure rooms decide, and writes the results.

The rooms that decide do not know this package. Modules here keep caches and work queues, and are thin.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from drachma.queueing.component.activeconfiguration import ActiveConfiguration
    from drachma.queueing.component.component import QueueingComponent
    from drachma.queueing.component.pendingview import PendingView
    from drachma.queueing.component.remoteclusters import Connect
    from drachma.queueing.component.reviews import Reviews

__all__ = ["ActiveConfiguration", "Connect", "PendingView", "QueueingComponent", "Reviews"]

_MODULES: Final = {
    "ActiveConfiguration": "activeconfiguration",
    "Connect": "remoteclusters",
    "PendingView": "pendingview",
    "QueueingComponent": "component",
    "Reviews": "reviews",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: commands that read queues need the resources only."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"drachma.queueing.component.{_MODULES[name]}"), name)
