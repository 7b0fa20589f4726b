"""The quota controller: writes the usage of every resource quota."""

from drachma.controllers.resourcequota.quotacontroller import ResourceQuotaController

__all__ = ["ResourceQuotaController"]
