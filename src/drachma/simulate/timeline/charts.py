"""Charts of reports as SVG: curves over time, and bars of single jobs. Colours follow the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from drachma.simulate.reports.drawing import shorten
from drachma.simulate.timeline import durations
from drachma.simulate.timeline.report import JobTimeline

_WIDTH: Final = 880
_PLOT_HEIGHT: Final = 190
_LEFT: Final = 58
_RIGHT: Final = 16
_TOP: Final = 12
_AXIS: Final = 40
"""Height of the labels below the plot."""
_LEGEND_LINE: Final = 20
_LETTER: Final = 6.4
"""Width of a letter of the legend."""
_MOST_LABEL: Final = 32
_BAR: Final = 18
_NAMES: Final = 190
"""Width of the names next to bars."""

COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#db2777", "#4d7c0f")
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
"""Distances of marks on a time axis, in seconds. Longer ones are whole days."""
_STYLE: Final = (
    "<style>text{font:11px system-ui,sans-serif;fill:#64748b}.grid{stroke:#e2e8f0}.axis{stroke:#94a3b8}"
    ".name{fill:#334155}.wait{fill:#cbd5e1}.run{fill:#2563eb}"
    "@media(prefers-color-scheme:dark){text{fill:#94a3b8}.grid{stroke:#27334a}.axis{stroke:#475569}"
    ".name{fill:#cbd5e1}.wait{fill:#475569}.run{fill:#60a5fa}}</style>"
)

Curve = tuple[str, list[tuple[float, float]]]


class Figure(NamedTuple):
    """Chart with its own legend."""

    title: str
    svg: str
    """Element for HTML pages."""

    @property
    def document(self) -> str:
        """SVG document of its own."""
        return self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def show_percent(value: float) -> str:
    """Return a share as people read it."""
    return f"{value:.0%}"


def show_count(value: float) -> str:
    """Return a number as people read it."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.1f}"


def draw_curves(
    title: str,
    curves: Sequence[Curve],
    *,
    unit: str,
    most: float | None = None,
    show: Callable[[float], str] = show_count,
) -> Figure:
    """Return a chart with steps over time, one colour for each curve. ``unit`` is the label of the vertical axis."""
    curves = [(name, points) for name, points in curves if points]
    end = max((points[-1][0] for _, points in curves), default=0.0) or 1.0
    highest = max((value for _, points in curves for _, value in points), default=0.0)
    step, top = (0.25, most) if most is not None else _count_steps(highest)
    width, bottom = _WIDTH - _LEFT - _RIGHT, _TOP + _PLOT_HEIGHT
    parts = []
    for number in range(round(top / step) + 1):
        y = bottom - _PLOT_HEIGHT * number * step / top
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(show(number * step))}</text>'
        )
    parts += _time_axis(end, _LEFT, width, bottom)
    parts.append(
        f'<text transform="translate(12 {_TOP + _PLOT_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(unit)}</text>"
    )
    for number, (name, points) in enumerate(curves):
        path = _path([(_LEFT + width * time / end, bottom - _PLOT_HEIGHT * value / top) for time, value in points])
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round">'
            f"<title>{escape(name)}</title></path>"
        )
    legend, height = _legend([(name, COLOURS[number % len(COLOURS)]) for number, (name, _) in enumerate(curves)])
    return Figure(title, _svg(title, bottom + _AXIS + height, [*parts, *legend]))


def draw_jobs(title: str, jobs: Sequence[JobTimeline], end: float) -> Figure:
    """Return a chart with one bar for each job: its time of waiting, and from its first start on."""
    end = end or 1.0
    width, bottom = _WIDTH - _NAMES - _RIGHT, _TOP + _BAR * len(jobs)
    parts = _time_axis(end, _NAMES, width, bottom, top=_TOP)
    for number, job in enumerate(jobs):
        y = _TOP + _BAR * number
        started = end if job.started is None else job.started
        begin, middle, last = (
            _NAMES + width * time / end for time in (job.arrived, started, end if job.ended is None else job.ended)
        )
        evicted = f", evicted {job.evictions} times" if job.evictions else ""
        hint = f"{job.job}: waits {durations.show(started - job.arrived)}{evicted}"
        parts.append(
            f'<text class="name" x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">'
            f"{escape(shorten(job.job.removeprefix('default/'), _MOST_LABEL - 4))}</text>"
            f'<rect class="wait" x="{begin:.1f}" y="{y + 4}" width="{max(middle - begin, 0.5):.1f}" height="11" rx="2">'
            f"<title>{escape(hint)}</title></rect>"
        )
        if job.started is not None:
            parts.append(
                f'<rect class="run" x="{middle:.1f}" y="{y + 4}" width="{max(last - middle, 1):.1f}" height="11" '
                'rx="2">'
                f"<title>{escape(hint)}</title></rect>"
            )
    y = bottom + _AXIS + 4
    parts.append(
        f'<rect class="wait" x="{_NAMES}" y="{y}" width="12" height="10" rx="2"/><text x="{_NAMES + 18}" y="{y + 9}">'
        f'waits</text><rect class="run" x="{_NAMES + 70}" y="{y}" width="12" height="10" rx="2"/>'
        f'<text x="{_NAMES + 88}" y="{y + 9}">from the first start to the end</text>'
    )
    return Figure(title, _svg(title, bottom + _AXIS + _LEGEND_LINE, parts))


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f"aria-label={quoteattr(title)}>{_STYLE}{''.join(parts)}</svg>"
    )


def _time_axis(end: float, x0: float, width: float, bottom: float, top: float | None = None) -> list[str]:
    step = next((each for each in _STEPS if end / each <= 10), 0) or 86_400 * math.ceil(end / 86_400 / 10)
    parts = [f'<line class="axis" x1="{x0}" x2="{x0 + width}" y1="{bottom}" y2="{bottom}"/>']
    for number in range(int(end / step) + 1):
        x = x0 + width * number * step / end
        upper = bottom if top is None else top
        parts.append(
            f'<line class="{"axis" if top is None else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{upper:.1f}" '
            f'y2="{bottom + 4:.1f}"/><text x="{x:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">'
            f"{escape(durations.show(number * step))}</text>"
        )
    parts.append(
        f'<text x="{x0 + width / 2:.1f}" y="{bottom + 33:.1f}" text-anchor="middle">time since the start</text>'
    )
    return parts


def _count_steps(highest: float) -> tuple[float, float]:
    """Return the distance of marks on an axis of counts, and its end."""
    rough = max(highest, 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough), 1.0)
    return step, step * max(math.ceil(highest / step), 1)


def _legend(entries: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """Return the legend in as many lines as it needs, and its height."""
    parts = []
    x, y = float(_LEFT), _TOP + _PLOT_HEIGHT + _AXIS + 10
    for name, colour in entries:
        label = shorten(name, _MOST_LABEL)
        room = 34 + _LETTER * len(label)
        if x + room > _WIDTH and x > _LEFT:
            x, y = float(_LEFT), y + _LEGEND_LINE
        parts.append(
            f'<rect x="{x:.1f}" y="{y - 9}" width="12" height="10" rx="2" fill="{colour}"/>'
            f'<text class="name" x="{x + 18:.1f}" y="{y}">{escape(label)}</text>'
        )
        x += room
    return parts, y - (_TOP + _PLOT_HEIGHT + _AXIS) + 8


def _path(points: Sequence[tuple[float, float]]) -> str:
    x, y = points[0]
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return f"M{x:.1f} {y:.1f}{steps}"
