"""Versioned objects and watch: what the API server stands on.

``protocol.Store`` is the contract; ``MemoryStore`` and ``SqliteStore`` keep it.
"""

from drachma.store.memory import MemoryStore
from drachma.store.protocol import Limits, Page, Store, Watch
from drachma.store.record import Body, Change, Draft, Event, Key, Record, fixed, stamped, stamped_deletion
from drachma.store.sqlite import SqliteStore
from drachma.store.write import Amend, Create, Delete, Update, Write

__all__ = [
    "Amend",
    "Body",
    "Change",
    "Create",
    "Delete",
    "Draft",
    "Event",
    "Key",
    "Limits",
    "MemoryStore",
    "Page",
    "Record",
    "SqliteStore",
    "Store",
    "Update",
    "Watch",
    "Write",
    "fixed",
    "stamped",
    "stamped_deletion",
]
