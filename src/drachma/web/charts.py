"""Charts as numbers for SVG that templates draw: no script, and no style that the policy would refuse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.web.models import Sample

WIDTH: Final = 600
HEIGHT: Final = 96


class Line(NamedTuple):
    """A line of a chart, and its values in words."""

    points: str
    area: str
    last: float
    top: float


class History(NamedTuple):
    """Usage over the last hours."""

    begin: dt.datetime
    end: dt.datetime
    used: Line
    pending: Line

    @property
    def middle(self) -> dt.datetime:
        """Time in the middle of the chart."""
        return self.begin + (self.end - self.begin) / 2


def history(samples: Sequence[Sample], now: dt.datetime) -> History | None:
    """Return the lines of used devices and pending pods, or None without samples."""
    if not samples:
        return None
    begin = min(samples[0].time, now - dt.timedelta(minutes=2))
    seconds = max((now - begin).total_seconds(), 1.0)
    places = [(sample.time - begin).total_seconds() / seconds * WIDTH for sample in samples]
    used_top = max(max(sample.devices for sample in samples), 1)
    pending_top = max(max(sample.pending for sample in samples), 1)
    return History(
        begin,
        now,
        _line(places, [sample.used for sample in samples], used_top),
        _line(places, [sample.pending for sample in samples], pending_top),
    )


def _line(places: Sequence[float], values: Sequence[int], top: float) -> Line:
    heights = [HEIGHT - 2 - value / top * (HEIGHT - 8) for value in values]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip((*places, WIDTH), (*heights, heights[-1]), strict=True))
    area = f"{places[0]:.1f},{HEIGHT} {points} {WIDTH},{HEIGHT}"
    return Line(points, area, values[-1], top)
