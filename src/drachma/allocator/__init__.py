"""Allocator: finds the devices for a claim that kube-scheduler would choose. Pure: no clock, randomness or I/O."""

from drachma.allocator.allocated import AllocatedState
from drachma.allocator.allocator import Allocator, allocate
from drachma.allocator.budget import Limits
from drachma.allocator.catalog import Catalog
from drachma.allocator.classes import Classes
from drachma.allocator.features import Features
from drachma.allocator.outcome import Allocated, DoesNotFit, GaveUp, Outcome
from drachma.allocator.placement import Node
from drachma.allocator.policy import NodePacking, OneDomain, Policy, Preference
from drachma.claims.identity import DeviceID

__all__ = [
    "Allocated",
    "AllocatedState",
    "Allocator",
    "Catalog",
    "Classes",
    "DeviceID",
    "DoesNotFit",
    "Features",
    "GaveUp",
    "Limits",
    "Node",
    "NodePacking",
    "OneDomain",
    "Outcome",
    "Policy",
    "Preference",
    "allocate",
]
