"""Versioned objects and watches: the storage of the API server.

``protocol.Store`` is the contract; ``MemoryStore`` and ``SqliteStore`` implement it.
"""

from drachma.store.memory import MemoryStore
from drachma.store.protocol import Limits, Page, Store, Watch
from drachma.store.record import Body, Change, Draft, Event, Key, Record, fixed, make_deletion_body, stamped
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
    "make_deletion_body",
    "stamped",
]
