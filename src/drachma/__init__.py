"""drachma: Dynamic Resource Allocation as a whole system, wire-compatible with Kubernetes.

The packages in ``__all__`` are the public API; docs/stability.md says what may change. They load when they are used.
"""

import importlib
from types import ModuleType

__version__ = "0.3.0"

__all__ = ["__version__", "allocator", "api", "client", "driver", "simulate", "testing"]


def __getattr__(name: str) -> ModuleType:
    """Import a public package when it is first used."""
    if name in __all__:
        return importlib.import_module(f"drachma.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
