"""The autoscaler: plans, carried out again and again on a live cluster by whoever provides nodes."""

from drachma.simulate.autoscaler.component import Autoscaler, Settings
from drachma.simulate.autoscaler.provider import Provider, ProviderError

__all__ = ["Autoscaler", "Provider", "ProviderError", "Settings"]
