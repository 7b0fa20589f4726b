"""Check of the audit log: it is JSON line by line, and every answered request is in it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

import msgspec


class _Event(msgspec.Struct):
    """Part of an audit event that is checked."""

    audit_id: str = msgspec.field(name="auditID")
    stage: str = ""


def check(log: pathlib.Path, answered: Iterable[pathlib.Path]) -> tuple[int, int, list[str]]:
    """Return the number of events, of lines that are no events, and the answered requests that are missing.

    The files ``answered`` have a request a line: its audit id, then what a reader wants to know of it.
    """
    lines = (line.partition(" ") for path in answered for line in path.read_text().splitlines())
    waiting = {audit_id: said for audit_id, _, said in lines}
    decoder = msgspec.json.Decoder(_Event)
    events = damaged = 0
    with log.open("rb") as file:
        for line in file:
            try:
                event = decoder.decode(line)
            except msgspec.MsgspecError:
                damaged += 1
                continue
            events += 1
            if event.stage in ("ResponseComplete", "Panic", "ResponseStarted"):
                waiting.pop(event.audit_id, None)
    return events, damaged, [f"{audit_id} {said}" for audit_id, said in waiting.items()]
