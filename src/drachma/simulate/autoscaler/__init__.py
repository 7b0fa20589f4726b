"""The autoscaler: carries plans out on a live cluster, round by round, through a provider of nodes."""

from drachma.simulate.autoscaler.component import Autoscaler, Settings
from drachma.simulate.autoscaler.provider import Provider, ProviderError

__all__ = ["Autoscaler", "Provider", "ProviderError", "Settings"]
