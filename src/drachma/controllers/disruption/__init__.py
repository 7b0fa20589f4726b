"""The disruption controller: counts the pods of disruption budgets, so that evictions know how many are allowed."""

from drachma.controllers.disruption.disruptioncontroller import DisruptionController

__all__ = ["DisruptionController"]
