"""drachma: Dynamic Resource Allocation as a whole system, wire-compatible with Kubernetes."""

__version__ = "0.1.0"

__all__ = ["__version__"]
