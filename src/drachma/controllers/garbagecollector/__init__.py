"""The garbage collector: what belongs to nobody any more is deleted, in the order that its owners ask for."""

from drachma.controllers.garbagecollector.gccontroller import GarbageCollector

__all__ = ["GarbageCollector"]
