"""The controller of structured parameters: v1 objects that stand for those of v1alpha2 (ADR 13)."""

from drachma.controllers.structured.structuredcontroller import StructuredParameters

__all__ = ["StructuredParameters"]
