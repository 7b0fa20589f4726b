"""Report as one HTML page: tables, and curves as inline SVG. The page needs no network and no script."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape

from drachma.simulate.timeline import charts, durations
from drachma.simulate.timeline.charts import Figure
from drachma.simulate.timeline.report import Point, Report

_STYLE: Final = """
:root { color-scheme: light dark; --ground: #f8fafc; --card: #ffffff; --text: #0f172a; --soft: #475569;
  --line: #e2e8f0; --warn: #fff7ed; --warn-line: #f59e0b; }
@media (prefers-color-scheme: dark) { :root { --ground: #0b1220; --card: #131c2e; --text: #e2e8f0; --soft: #94a3b8;
  --line: #27334a; --warn: #2a2113; --warn-line: #f59e0b; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); margin: 0; }
main { max-width: 980px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; line-height: 1.25; letter-spacing: -.01em; margin: 0 0 4px; }
h2 { font-size: 17px; margin: 36px 0 10px; }
.lead { color: var(--soft); margin: 0 0 24px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(118px, 1fr)); gap: 12px; margin: 0 0 20px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; line-height: 1.3; }
.card span { color: var(--soft); font-size: 13px; }
.wide { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { color: var(--soft); font-weight: 600; font-size: 12.5px; white-space: nowrap; }
th, td { text-align: right; padding: 7px 14px; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
figure { margin: 0 0 16px; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px 8px; }
figcaption { font-weight: 600; margin-bottom: 6px; } svg { max-width: 100%; height: auto; display: block; }
.warning { background: var(--warn); padding: 10px 14px; border-left: 4px solid var(--warn-line); border-radius: 6px; }
"""

Cells = Sequence[object]


def render(reports: Sequence[Report]) -> str:
    """Return a page about one simulation, or about several next to each other."""
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width"/>',
        f"<title>{escape(_title(reports))}</title><style>{_STYLE}</style></head><body><main>",
        f'<h1>{escape(_title(reports))}</h1><p class="lead">{escape(_lead(reports))}</p>',
        _cards(reports[0]) if len(reports) == 1 else _summary(reports),
        *(_warnings(report) for report in reports),
        "<h2>Over time</h2>",
        *(f"<figure><figcaption>{escape(each.title)}</figcaption>{each.svg}</figure>" for each in figures(reports)),
        "<h2>Waiting times</h2>",
        _waits(reports),
    ]
    for report in reports:
        parts += [_costs(report), _evictions(report), _waiting_jobs(report), _explained(report)]
    parts.append("</main></body></html>\n")
    return "\n".join(filter(None, parts))


def _title(reports: Sequence[Report]) -> str:
    titles = list(dict.fromkeys(report.title for report in reports))
    return f"Simulation: {titles[0]}" if len(titles) == 1 else f"Comparison: {', '.join(titles)}"


def _name(report: Report) -> str:
    return f"{report.title}, seed {report.seed}"


def _lead(reports: Sequence[Report]) -> str:
    first = reports[0]
    state = "" if all(report.is_complete for report in reports) else ", interrupted"
    if len(reports) == 1:
        return f"Seed {first.seed}, {durations.show(first.simulated_seconds)} of simulated time{state}"
    seeds = sorted({report.seed for report in reports})
    return f"{len(reports)} runs on the same events, seeds {', '.join(map(str, seeds))}{state}"


def _cards(report: Report) -> str:
    """Return the most important figures of one simulation."""
    busiest = max(report.utilisation.items(), key=lambda entry: entry[1], default=("resources", 0.0))
    waits = [row.p95 for row in report.waits]
    figures = [
        (f"{report.arrived:,}", "jobs arrived"),
        (f"{report.completed:,}", "completed"),
        (f"{report.waiting:,}", "wait at the end"),
        (durations.show(max(waits, default=0.0)), "longest p95 of waiting times"),
        (f"{busiest[1]:.1%}", f"mean use of {busiest[0]}"),
        (f"{report.evictions:,}", "evictions"),
        (f"{report.lost_pod_hours:,.1f}", "pod hours lost"),
    ]
    if report.lost_device_hours:
        figures.append((f"{report.lost_device_hours:,.1f}", "device hours lost"))
    if report.node_groups:
        figures.append((f"{sum(group.cost for group in report.node_groups):,.1f}", "cost of node groups"))
    cards = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>' for value, label in figures
    )
    return f'<div class="cards">{cards}</div>'


def _costs(report: Report) -> str:
    if not report.node_groups:
        return ""
    rows = [
        (each.group, f"{each.mean_nodes:,.1f}", f"{each.node_hours:,.1f}", f"{each.price:,g}", f"{each.cost:,.1f}")
        for each in report.node_groups
    ]
    return f"<h2>Node groups: {escape(_name(report))}</h2>" + _table(
        ("group", "mean nodes", "node hours", "price", "cost"), rows
    )


def _table(header: Cells, rows: Iterable[Cells], texts: Container[int] = ()) -> str:
    """Return a table. ``texts`` are the columns that are read as text, in addition to the first."""

    def cell(kind: str, number: int, content: object) -> str:
        style = ' class="text"' if number in texts else ""
        return f"<{kind}{style}>{escape(str(content))}</{kind}>"

    head = "".join(cell("th", number, content) for number, content in enumerate(header))
    body = "".join(
        f"<tr>{''.join(cell('td', number, content) for number, content in enumerate(row))}</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


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
        drawn.append(_shares("Used share of resources", curves))
    else:
        drawn += [_shares(f"Used share of {name}", _curves(reports, _used(name))) for name in resources]
    if any(point.fragmentation is not None for report in reports for point in report.series):
        drawn.append(
            _shares(
                "Fragmentation: share of the free capacity that a typical job could not use",
                _curves(reports, lambda point: point.fragmentation),
            )
        )
    for title, value in _POD_COUNTS.items():
        drawn.append(charts.draw_curves(title, _curves(reports, value), unit="pods"))
    if len(reports) == 1 and reports[0].longest_waits:
        drawn.append(
            charts.draw_jobs("Jobs that waited longest", reports[0].longest_waits, reports[0].simulated_seconds)
        )
    return drawn


_POD_COUNTS: Final[dict[str, Callable[[Point], float | None]]] = {
    "Pods that wait": lambda point: float(point.waiting),
    "Pods that run": lambda point: float(point.running),
}


def _shares(title: str, curves: Sequence[charts.Curve]) -> Figure:
    return charts.draw_curves(title, curves, unit="share", most=1.0, show=charts.show_percent)


def _used(name: str) -> Callable[[Point], float | None]:
    return lambda point: point.used.get(name, 0.0)


def _curves(
    reports: Sequence[Report], value: Callable[[Point], float | None]
) -> list[tuple[str, list[tuple[float, float]]]]:
    return [
        (_name(report), [(point.time, number) for point in report.series if (number := value(point)) is not None])
        for report in reports
    ]


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
    rows = [
        (pair.victim, pair.preemptor, pair.count, f"{pair.lost_pod_hours:,.1f}", f"{pair.lost_device_hours:,.1f}")
        for pair in report.eviction_pairs
    ]
    header = ("victim", "for", "times", "lost pod hours", "lost device hours")
    return f"<h2>Preemptions: {escape(_name(report))}</h2>" + _table(header, rows, texts={1})


def _waiting_jobs(report: Report) -> str:
    if not report.waiting_jobs:
        return ""
    rows = [
        (job.job, job.queue, durations.show(job.waited_seconds), job.evictions, job.reason)
        for job in report.waiting_jobs
    ]
    return f"<h2>Jobs that wait at the end: {escape(_name(report))}</h2>" + _table(
        ("job", "queue", "since arrival", "evictions", "reason"), rows, texts={1, 4}
    )


def _explained(report: Report) -> str:
    if report.explained is None:
        return ""
    rows = [
        (durations.show(each.begin_seconds), durations.show(each.end_seconds), each.text)
        for each in report.explained.hours
    ]
    title = f"{report.explained.job}: {_name(report)}"
    return f"<h2>{escape(title)}</h2>" + _table(("from", "to", "state"), rows, texts={2})
