"""The quota controller: how much of every resource quota is in use."""

from drachma.controllers.resourcequota.quotacontroller import ResourceQuotaController

__all__ = ["ResourceQuotaController"]
