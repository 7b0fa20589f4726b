"""Node lifecycle: marks nodes that are silent, not ready or under pressure, so that pods avoid or leave them."""

from drachma.controllers.nodelifecycle.lifecyclecontroller import NodeLifecycle

__all__ = ["NodeLifecycle"]
