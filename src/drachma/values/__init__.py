"""Immutable values with Kubernetes' exact rules: quantities, versions, names, label and node selectors.

Import the module you need (``from drachma.values import quantity``); this package exports nothing itself.
"""

__all__: list[str] = []
