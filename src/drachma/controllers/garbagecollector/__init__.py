"""The garbage collector: deletes objects whose owners are gone, in the order that the owners ask for."""

from drachma.controllers.garbagecollector.gccontroller import GarbageCollector

__all__ = ["GarbageCollector"]
