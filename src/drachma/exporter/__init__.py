"""Exporter: devices, claims, pending pods and queues of a cluster as metrics with a bounded number of series."""

from drachma.exporter.census import Census, Limits, Objects
from drachma.exporter.exporter import Exporter

__all__ = ["Census", "Exporter", "Limits", "Objects"]
