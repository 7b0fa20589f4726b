"""Request metrics under upstream's names, so that dashboards and alerts for kube-apiserver work unchanged.

Everything is counted in plain numbers and put into Prometheus' form when a client asks for it: counters of Prometheus'
client cost as much as serving a read does. That client also escapes and sorts the labels of every sample; here each
label set becomes text once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import prometheus_client
from prometheus_client import core, exposition
from prometheus_client import registry as collecting

from drachma.server.calls.call import Call
from drachma.server.histogram import Histogram
from drachma.server.reads import watching
from drachma.server.reads.reader import Reader
from drachma.server.wire import limitmetrics

COMPONENT: Final = "apiserver"

_DURATIONS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_SIZES: Final = (1000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0, 100_000_000.0, 1_000_000_000.0)
_READS: Final = frozenset({"GET", "HEAD"})
_WATCH: Final = "WATCH"
_VERBS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "get": "GET", "list": "LIST"}


class Labels(NamedTuple):
    """Labels of a request."""

    verb: str
    dry_run: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


def labels_of(call: Call | None, method: str) -> Labels:
    """Return the labels of a request; requests for non-resource paths have only a method."""
    if call is None:
        return Labels(method, "", "", "", "", "", "")
    target = call.target
    return Labels(
        _VERBS.get(call.verb) or call.verb.upper(),
        "All" if "dryRun" in call.query else "",
        target.resource.group,
        target.version,
        target.resource.plural,
        target.subresource.name if target.subresource is not None else "",
        target.scope,
    )


class Level:
    """A number that goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class _Kind:
    """Counters of the requests with the same labels."""

    __slots__ = ("codes", "durations", "sizes")

    def __init__(self, sizes: Histogram) -> None:
        self.codes: Final[dict[int, int]] = {}
        self.durations: Final = Histogram(_DURATIONS)
        self.sizes: Final = sizes


class Metrics:
    """Counters and histograms of one server."""

    def __init__(self) -> None:
        self.registry: Final = prometheus_client.CollectorRegistry()
        """Metrics of the components in the process, which ``/metrics`` shows in addition to those counted here."""
        self._kinds: Final[dict[Labels, _Kind]] = {}
        self._sizes: Final[dict[tuple[str, ...], Histogram]] = {}
        self._reading: Final = Level()
        self._mutating: Final = Level()
        self._watches: Final[dict[tuple[str, ...], Level]] = {}
        self._watch_bytes: Final[dict[tuple[str, ...], int]] = {}
        self.registry.register(limitmetrics.CacheMetrics())

    def observe_store(self, store: Reader, open_watches: watching.Watches) -> None:
        """Add metrics of the store: its revision, and the number of watches."""
        revision = prometheus_client.Gauge(
            "apiserver_storage_revision", "The newest revision of the store.", registry=self.registry
        )
        revision.set_function(lambda: store.revision)
        watches = prometheus_client.Gauge(
            "apiserver_registered_watchers", "Watches that are open.", registry=self.registry
        )
        watches.set_function(lambda: len(open_watches))

    def concurrency_gauge(self, method: str) -> Level:
        """Return the gauge of requests with this method."""
        return self._reading if method in _READS else self._mutating

    def answered(self, labels: Labels, *, code: int, seconds: float, size: int) -> None:
        """Record the answer to a request other than a watch."""
        kind = self._kinds.get(labels) or self._add(labels)
        kind.codes[code] = kind.codes.get(code, 0) + 1
        kind.durations.observe(seconds)
        kind.sizes.observe(size)

    def watch_started(self, labels: Labels) -> None:
        self._watches.setdefault(_long_running_labels(labels), Level()).value += 1

    def watch_finished(self, labels: Labels, *, code: int, size: int) -> None:
        self._watches[_long_running_labels(labels)].value -= 1
        kind = self._kinds.get(labels) or self._add(labels)
        kind.codes[code] = kind.codes.get(code, 0) + 1
        place = (labels.group, labels.version, labels.resource)
        self._watch_bytes[place] = self._watch_bytes.get(place, 0) + size

    def read(self) -> "Reading":
        """Return all values as they are now. They change on the event loop, so this is called there."""
        return Reading(
            requests=[(labels, dict(kind.codes), kind.durations.copy()) for labels, kind in self._kinds.items()],
            sizes=[(labels, histogram.copy()) for labels, histogram in self._sizes.items()],
            in_flight=(self._reading.value, self._mutating.value),
            watches={labels: level.value for labels, level in self._watches.items()},
            watch_bytes=dict(self._watch_bytes),
            others=tuple(self.registry.collect()),
        )

    def _add(self, labels: Labels) -> _Kind:
        sizes = self._sizes.setdefault(_long_running_labels(labels), Histogram(_SIZES))
        kind = self._kinds[labels] = _Kind(sizes)
        return kind


class Reading(NamedTuple):
    """Values of all metrics at one moment.

    Servers with custom resources have thousands of labels, and forming their samples takes up to a second. A reading
    is taken on the event loop in a few milliseconds, and written in a thread.
    """

    requests: Sequence[tuple[Labels, Mapping[int, int], Histogram]]
    sizes: Sequence[tuple[tuple[str, ...], Histogram]]
    in_flight: tuple[int, int]
    watches: Mapping[tuple[str, ...], int]
    watch_bytes: Mapping[tuple[str, ...], int]
    others: tuple[core.Metric, ...]
    """Metrics of components in the server's process, and of parts of the server."""

    def write(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        registry = prometheus_client.CollectorRegistry(auto_describe=False)
        registry.register(_Families(self.others))
        return "".join(self._own_lines()).encode() + exposition.generate_latest(registry)

    def _own_lines(self) -> Iterator[str]:
        yield from write_values(
            "apiserver_request_total",
            "counter",
            "Requests by verb, dry run, group, version, resource, scope, component and response code.",
            (*Labels._fields, "component", "code"),
            (
                ((*labels, COMPONENT, str(code)), count)
                for labels, codes, _ in self.requests
                for code, count in codes.items()
            ),
        )
        yield from write_histograms(
            "apiserver_request_duration_seconds",
            "Response latency by verb, dry run, group, version, resource, subresource, scope and component.",
            (*Labels._fields, "component"),
            (((*labels, COMPONENT), histogram) for labels, _, histogram in self.requests if labels.verb != _WATCH),
        )
        yield from write_histograms(
            "apiserver_response_sizes",
            "Response size in bytes by group, version, verb, resource, subresource, scope and component.",
            _WITHOUT_DRY_RUN,
            ((part, histogram) for part, histogram in self.sizes if part[0] != _WATCH),
        )
        yield from write_values(
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests being served, by kind.",
            ("request_kind",),
            ((("readOnly",), self.in_flight[0]), (("mutating",), self.in_flight[1])),
        )
        yield from write_values(
            "apiserver_longrunning_requests", "gauge", "Open watches.", _WITHOUT_DRY_RUN, self.watches.items()
        )
        yield from write_values(
            "apiserver_watch_bytes_total",
            "counter",
            "Bytes sent to watches.",
            ("group", "version", "resource"),
            self.watch_bytes.items(),
        )


class _Families(collecting.Collector):
    """Metrics that were collected before."""

    def __init__(self, families: Sequence[core.Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[core.Metric]:
        return self._families


_WITHOUT_DRY_RUN: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")


def _long_running_labels(labels: Labels) -> tuple[str, ...]:
    trailing = (labels.resource, labels.subresource, labels.scope, COMPONENT)
    return (labels.verb, labels.group, labels.version, *trailing)


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
