"""Names of the admission plugins that can be disabled."""

from typing import Final

ACCOUNTS: Final = "ServiceAccount"
NODE_TAINTS: Final = "TaintNodesByCondition"
STORAGE_IN_USE: Final = "StorageObjectInUseProtection"
POD_SECURITY: Final = "PodSecurity"

PLUGINS: Final = (ACCOUNTS, NODE_TAINTS, STORAGE_IN_USE)
"""Plugins that need controllers: to create accounts, to remove taints, to release volumes."""

DISABLEABLE: Final = (*PLUGINS, POD_SECURITY)
"""Plugins that --disable-admission-plugins accepts."""
