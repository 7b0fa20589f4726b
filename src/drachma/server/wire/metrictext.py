"""Metrics with many label sets in Prometheus' text format.

Prometheus' client escapes and sorts the labels of every sample, and a histogram has a sample for each bucket. Here
each label set becomes text once.
"""

from collections.abc import Iterable, Iterator, Sequence

from drachma.server.histogram import Histogram


def write_values(
    name: str, kind: str, documentation: str, label_names: Sequence[str], rows: Iterable[tuple[Sequence[str], float]]
) -> Iterator[str]:
    """Yield the text of a counter or gauge with one value for each label set."""
    yield _head(name, kind, documentation)
    for labels, value in rows:
        yield f"{name}{{{_label_text(label_names, labels)}}} {float(value)}\n"


def write_histograms(
    name: str, documentation: str, label_names: Sequence[str], rows: Iterable[tuple[Sequence[str], Histogram]]
) -> Iterator[str]:
    """Yield the text of a histogram with its buckets for each label set. All rows have the same buckets."""
    yield _head(name, "histogram", documentation)
    bounds: list[str] = []
    for labels, histogram in rows:
        bounds = bounds or histogram.bounds()
        totals = histogram.totals()
        text = _label_text(label_names, labels)
        buckets = zip(bounds, totals, strict=True)
        yield "".join([f'{name}_bucket{{{text},le="{bound}"}} {count}\n' for bound, count in buckets])
        yield f"{name}_count{{{text}}} {totals[-1]}\n{name}_sum{{{text}}} {histogram.sum}\n"


def _head(name: str, kind: str, documentation: str) -> str:
    return f"# HELP {name} {documentation}\n# TYPE {name} {kind}\n"


def _label_text(names: Sequence[str], values: Sequence[str]) -> str:
    """Return labels in the order of their names, as Prometheus' client writes them."""
    return ",".join([f'{name}="{_escape(value)}"' for name, value in sorted(zip(names, values, strict=True))])


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
