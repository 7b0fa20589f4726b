"""Node lifecycle: nodes that are silent, not ready or under pressure are marked, so that pods stay away or leave."""

from drachma.controllers.nodelifecycle.lifecyclecontroller import NodeLifecycle

__all__ = ["NodeLifecycle"]
