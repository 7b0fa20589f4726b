"""Report as one HTML page: tables, and curves as inline SVG. The page needs no network and no script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from drachma.simulate.reports.drawing import shorten
from drachma.simulate.timeline import durations
from drachma.simulate.timeline.report import Point, Report

_WIDTH: Final = 860
_HEIGHT: Final = 180
_LEFT: Final = 46
_BOTTOM: Final = 22
_MOST_LABEL: Final = 28
_COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#db2777", "#4d7c0f")
_STYLE: Final = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1f2937; max-width: 920px; margin: 24px auto; padding: 0 16px; }
h1 { font-size: 22px; } h2 { font-size: 16px; margin-top: 28px; }
table { border-collapse: collapse; margin: 8px 0; }
th, td { text-align: right; padding: 3px 10px; border-bottom: 1px solid #e5e7eb; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 12px 0; } svg { max-width: 100%; height: auto; } figcaption { font-size: 13px; color: #4b5563; }
.warning { background: #fef3c7; padding: 8px 12px; border-left: 4px solid #d97706; }
"""

Cells = Sequence[object]


class Figure(NamedTuple):
    """Curves over time with their own legend."""

    title: str
    svg: str
    """Element for HTML pages."""

    @property
    def document(self) -> str:
        """SVG document of its own."""
        return self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def render(reports: Sequence[Report]) -> str:
    """Return a page about one simulation, or about several next to each other."""
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(_title(reports))}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(_title(reports))}</h1>",
        _summary(reports),
        *(_warnings(report) for report in reports),
        *(
            f"<figure><figcaption><b>{escape(each.title)}</b></figcaption>{each.svg}</figure>"
            for each in figures(reports)
        ),
        "<h2>Waiting times</h2>",
        _waits(reports),
    ]
    for report in reports:
        parts += [_evictions(report), _waiting_jobs(report), _explained(report)]
    parts.append("</body></html>\n")
    return "\n".join(filter(None, parts))


def _title(reports: Sequence[Report]) -> str:
    titles = list(dict.fromkeys(report.title for report in reports))
    return f"Simulation: {titles[0]}" if len(titles) == 1 else f"Comparison: {', '.join(titles)}"


def _name(report: Report) -> str:
    return f"{report.title}, seed {report.seed}"


def _table(header: Cells, rows: Iterable[Cells]) -> str:
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _summary(reports: Sequence[Report]) -> str:
    resources = list(dict.fromkeys(name for report in reports for name, share in report.utilisation.items() if share))
    rows = [
        (
            _name(report),
            durations.show(report.simulated_seconds) + ("" if report.is_complete else " (interrupted)"),
            f"{report.arrived:,}",
            f"{report.started:,}",
            f"{report.completed:,}",
            f"{report.waiting:,}",
            f"{report.evictions:,}",
            f"{report.lost_pod_hours:,.1f}",
            *(f"{report.utilisation.get(name, 0):.1%}" for name in resources),
        )
        for report in reports
    ]
    header = ("", "simulated", "arrived", "started", "completed", "waiting", "evictions", "lost pod hours")
    return _table((*header, *(f"mean {name}" for name in resources)), rows)


def _warnings(report: Report) -> str:
    texts = [
        f"{_name(report)}: {', '.join(loop.jobs)} evict each other ({loop.evictions} evictions). "
        f"Allowed by {'; '.join(loop.settings)}."
        for loop in report.loops
    ]
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in texts)


def figures(reports: Sequence[Report]) -> list[Figure]:
    """Return the curves of one simulation, or of several in the same figures."""
    resources = list(
        dict.fromkeys(
            name for report in reports for point in report.series for name, share in point.used.items() if share
        )
    )
    drawn = []
    if len(reports) == 1:
        curves = [
            (name, [(point.time, point.used.get(name, 0.0)) for point in reports[0].series]) for name in resources
        ]
        drawn.append(_figure("Used share of resources", curves, most=1.0, show=_percent))
    else:
        drawn += [
            _figure(f"Used share of {name}", _curves(reports, _used(name)), most=1.0, show=_percent)
            for name in resources
        ]
    if any(point.fragmentation is not None for report in reports for point in report.series):
        drawn.append(
            _figure(
                "Fragmentation: share of the free capacity that a typical job could not use",
                _curves(reports, lambda point: point.fragmentation),
                most=1.0,
                show=_percent,
            )
        )
    drawn.append(_figure("Pods that wait", _curves(reports, lambda point: float(point.waiting))))
    drawn.append(_figure("Pods that run", _curves(reports, lambda point: float(point.running))))
    return drawn


def _used(name: str) -> Callable[[Point], float | None]:
    return lambda point: point.used.get(name, 0.0)


def _curves(
    reports: Sequence[Report], value: Callable[[Point], float | None]
) -> list[tuple[str, list[tuple[float, float]]]]:
    return [
        (_name(report), [(point.time, number) for point in report.series if (number := value(point)) is not None])
        for report in reports
    ]


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _figure(
    title: str,
    curves: Sequence[tuple[str, list[tuple[float, float]]]],
    *,
    most: float | None = None,
    show: Callable[[float], str] = _count,
) -> Figure:
    """Return a figure with steps over time, one colour for each curve."""
    curves = [(name, points) for name, points in curves if points]
    end = max((points[-1][0] for _, points in curves), default=0.0) or 1.0
    top = most or max((value for _, points in curves for _, value in points), default=0.0) or 1.0
    plot_width, plot_height = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - 10
    marks = []
    for fraction in (0.0, 0.25, 0.5, 0.75, 1.0):
        y, x = 10 + plot_height * (1 - fraction), _LEFT + plot_width * fraction
        marks.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(show(top * fraction))}</text>'
            f'<text x="{x:.1f}" y="{_HEIGHT - 5}" text-anchor="middle">{escape(durations.show(end * fraction))}</text>'
        )
    for number, (_, points) in enumerate(curves):
        path = _path(
            [(_LEFT + plot_width * time / end, 10 + plot_height * (1 - value / top)) for time, value in points]
        )
        marks.append(f'<path d="{path}" fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="1.3"/>')
    x = float(_LEFT)
    for number, (name, _) in enumerate(curves):
        label = shorten(name, _MOST_LABEL)
        colour = _COLOURS[number % len(_COLOURS)]
        marks.append(f'<text x="{x:.1f}" y="{_HEIGHT + 12}" fill="{colour}">&#9632; {escape(label)}</text>')
        x += 24 + 6.2 * len(label)
    height = _HEIGHT + 18
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-size="11" fill="#6b7280" '
        f'font-family="system-ui, sans-serif"><rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
        f"{''.join(marks)}</svg>"
    )
    return Figure(title, svg)


def _path(points: Sequence[tuple[float, float]]) -> str:
    x, y = points[0]
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return f"M{x:.1f} {y:.1f}{steps}"


def _waits(reports: Sequence[Report]) -> str:
    rows = [
        (
            _name(report) if len(reports) > 1 else row.queue,
            *((row.queue,) if len(reports) > 1 else ()),
            row.priority,
            f"{row.jobs:,}",
            *(durations.show(each) for each in (row.mean, row.p50, row.p95, row.p99, row.most)),
        )
        for report in reports
        for row in report.waits
    ]
    first = ("", "queue") if len(reports) > 1 else ("queue",)
    return _table((*first, "priority", "started jobs", "mean", "p50", "p95", "p99", "max"), rows)


def _evictions(report: Report) -> str:
    if not report.eviction_pairs:
        return ""
    rows = [(pair.victim, pair.preemptor, pair.count) for pair in report.eviction_pairs]
    return f"<h2>Preemptions: {escape(_name(report))}</h2>" + _table(("victim", "for", "times"), rows)


def _waiting_jobs(report: Report) -> str:
    if not report.waiting_jobs:
        return ""
    rows = [
        (job.job, job.queue, durations.show(job.waited_seconds), job.evictions, job.reason)
        for job in report.waiting_jobs
    ]
    return f"<h2>Jobs that wait at the end: {escape(_name(report))}</h2>" + _table(
        ("job", "queue", "since arrival", "evictions", "reason"), rows
    )


def _explained(report: Report) -> str:
    if report.explained is None:
        return ""
    rows = [
        (durations.show(each.begin_seconds), durations.show(each.end_seconds), each.text)
        for each in report.explained.hours
    ]
    title = f"{report.explained.job}: {_name(report)}"
    return f"<h2>{escape(title)}</h2>" + _table(("from", "to", ""), rows)
