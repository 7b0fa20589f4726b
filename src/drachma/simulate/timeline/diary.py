"""Diary of one job: the reason why it waits, or the place where it runs, hour by hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.simulate.timeline.jobrun import JobRun

_HOUR: Final = 3600.0
_MOST_ENTRIES: Final = 100_000
"""Number of changes that are kept."""


class DiaryRow(NamedTuple):
    """Hours in which the same was true for most of the time. Times are seconds since the start of the simulation."""

    begin: float
    end: float
    text: str


class Diary:
    """Notes about one job, by its namespace and name."""

    def __init__(self, key: str) -> None:
        self.key: Final = key
        self._entries: Final[list[tuple[float, str]]] = []
        self._ended: float | None = None

    @property
    def has_arrived(self) -> bool:
        """True if the job was seen."""
        return bool(self._entries)

    def look(self, jobs: Mapping[str, JobRun], now: float) -> None:
        """Note the state of the job, if it has arrived and not ended."""
        job = jobs.get(self.key)
        if job is None:
            if self._entries and self._ended is None:
                self._ended = now
            return
        text = _describe(job)
        last = self._entries[-1][1] if self._entries else ""
        if text != last and len(self._entries) < _MOST_ENTRIES:
            self._entries.append((now if self._entries else job.arrival.time, text))

    def rows(self, now: float) -> list[DiaryRow]:
        """Return the hours from the arrival to the end of the job, or to now. Equal hours in a row are one entry."""
        if not self._entries:
            return []
        end = now if self._ended is None else self._ended
        rows: list[DiaryRow] = []
        position, begin = 0, self._entries[0][0]
        while begin < end:
            stop = min(begin + _HOUR, end)
            lasting: dict[str, float] = {}
            while True:
                time, text = self._entries[position]
                following = self._entries[position + 1][0] if position + 1 < len(self._entries) else end
                lasting[text] = lasting.get(text, 0.0) + max(min(following, stop) - max(time, begin), 0.0)
                if following >= stop:
                    break
                position += 1
            text = max(lasting, key=lambda each: lasting[each])
            if rows and rows[-1].text == text:
                rows[-1] = rows[-1]._replace(end=stop)
            else:
                rows.append(DiaryRow(begin, stop, text))
            begin = stop
        return rows


def _describe(job: JobRun) -> str:
    evicted = f", evicted {job.evictions} times so far" if job.evictions else ""
    if not job.waiting:
        nodes = sorted({each.node for each in job.running.values()})
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        return f"runs on {', '.join(nodes[:3])}{more}"
    running = f"{len(job.running)} of {len(job.running) + len(job.waiting)} pods run, " if job.running else ""
    return f"{running}waits: {job.reason or 'it is not its turn'}{evicted}"
