"""The disruption controller: counts the pods of disruption budgets, so that evictions know what is left of them."""

from drachma.controllers.disruption.disruptioncontroller import DisruptionController

__all__ = ["DisruptionController"]
