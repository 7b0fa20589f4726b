"""The store in memory: for tests, simulation, and servers that need no data directory."""

from drachma.store import engine, journal, protocol, state


class MemoryStore(engine.Engine):
    def __init__(self, *, limits: protocol.Limits | None = None) -> None:
        super().__init__(state.State(), journal.MemoryJournal(), limits=limits or protocol.Limits())
