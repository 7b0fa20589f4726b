"""The controller of validating policies' status: whether their expressions fit the types of what they look at."""

from drachma.controllers.validatingadmissionpolicy.policystatus import PolicyStatusController

__all__ = ["PolicyStatusController"]
