"""The controller of structured parameters: v1 counterparts of v1alpha2 objects (ADR 13)."""

from drachma.controllers.structured.structuredcontroller import StructuredParameters

__all__ = ["StructuredParameters"]
