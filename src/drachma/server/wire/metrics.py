"""Request metrics under upstream's names, so that dashboards and alerts for kube-apiserver work unchanged.

Everything is counted in plain numbers and put into Prometheus' form when somebody asks: its client's own counters cost
as much as a read does.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import prometheus_client
from prometheus_client import core, exposition
from prometheus_client import registry as collecting

from drachma.server.calls.call import Call
from drachma.server.histogram import Histogram
from drachma.server.reads import watching
from drachma.server.reads.reader import Reader
from drachma.server.wire import cachemetrics

COMPONENT: Final = "apiserver"

_DURATIONS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_SIZES: Final = (1000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0, 100_000_000.0, 1_000_000_000.0)
_READS: Final = frozenset({"GET", "HEAD"})
_WATCH: Final = "WATCH"
_VERBS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "get": "GET", "list": "LIST"}


class Labels(NamedTuple):
    """What tells one kind of request from another."""

    verb: str
    dry_run: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


def labels_of(call: Call | None, method: str) -> Labels:
    """The labels of a request; requests beside the resources only have their method."""
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
    """What is known of the requests of one kind."""

    __slots__ = ("codes", "durations", "sizes")

    def __init__(self, sizes: Histogram) -> None:
        self.codes: Final[dict[int, int]] = {}
        self.durations: Final = Histogram(_DURATIONS)
        self.sizes: Final = sizes


class Metrics(collecting.Collector):
    """The counters and histograms of one server."""

    def __init__(self) -> None:
        self.registry: Final = prometheus_client.CollectorRegistry()
        """What ``/metrics`` shows; components in the server's process put theirs in it."""
        self._kinds: Final[dict[Labels, _Kind]] = {}
        self._sizes: Final[dict[tuple[str, ...], Histogram]] = {}
        self._reading: Final = Level()
        self._mutating: Final = Level()
        self._watches: Final[dict[tuple[str, ...], Level]] = {}
        self._watch_bytes: Final[dict[tuple[str, ...], int]] = {}
        self.registry.register(self)
        self.registry.register(cachemetrics.CacheMetrics())

    def observe_store(self, store: Reader, open_watches: watching.Watches) -> None:
        """Adds what is known about the store: its revision, and the number of watches."""
        revision = prometheus_client.Gauge(
            "apiserver_storage_revision", "The newest revision of the store.", registry=self.registry
        )
        revision.set_function(lambda: store.revision)
        watches = prometheus_client.Gauge(
            "apiserver_registered_watchers", "Watches that are open.", registry=self.registry
        )
        watches.set_function(lambda: len(open_watches))

    def in_flight(self, method: str) -> Level:
        """Where a request of this method counts while it is served."""
        return self._reading if method in _READS else self._mutating

    def answered(self, labels: Labels, *, code: int, seconds: float, size: int) -> None:
        """A request other than a watch has been answered."""
        kind = self._kinds.get(labels) or self._add(labels)
        kind.codes[code] = kind.codes.get(code, 0) + 1
        kind.durations.observe(seconds)
        kind.sizes.observe(size)

    def watch_started(self, labels: Labels) -> None:
        self._watches.setdefault(_without_dry_run(labels), Level()).value += 1

    def watch_finished(self, labels: Labels, *, code: int, size: int) -> None:
        self._watches[_without_dry_run(labels)].value -= 1
        kind = self._kinds.get(labels) or self._add(labels)
        kind.codes[code] = kind.codes.get(code, 0) + 1
        place = (labels.group, labels.version, labels.resource)
        self._watch_bytes[place] = self._watch_bytes.get(place, 0) + size

    def families(self) -> tuple[core.Metric, ...]:
        """Return all metrics as they are now. What they count changes on the event loop, so this is called there."""
        return tuple(self.registry.collect())

    def collect(self) -> Iterator[core.Metric]:
        """What the registry asks for: everything counted here, in its form."""
        requests = core.CounterMetricFamily(
            "apiserver_request_total",
            "Requests by verb, dry run, group, version, resource, scope, component and response code.",
            labels=(*Labels._fields, "component", "code"),
        )
        durations = core.HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Response latency by verb, dry run, group, version, resource, subresource, scope and component.",
            labels=(*Labels._fields, "component"),
        )
        for labels, kind in self._kinds.items():
            for code, count in kind.codes.items():
                requests.add_metric((*labels, COMPONENT, str(code)), count)
            if labels.verb != _WATCH:
                durations.add_metric((*labels, COMPONENT), kind.durations.buckets(), kind.durations.sum)
        yield requests
        yield durations
        sizes = core.HistogramMetricFamily(
            "apiserver_response_sizes",
            "Response size in bytes by group, version, verb, resource, subresource, scope and component.",
            labels=_WITHOUT_DRY_RUN,
        )
        for part, histogram in self._sizes.items():
            if part[0] != _WATCH:
                sizes.add_metric(part, histogram.buckets(), histogram.sum)
        yield sizes
        in_flight = core.GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being served, by kind.", labels=("request_kind",)
        )
        in_flight.add_metric(("readOnly",), self._reading.value)
        in_flight.add_metric(("mutating",), self._mutating.value)
        yield in_flight
        long_running = core.GaugeMetricFamily(
            "apiserver_longrunning_requests", "Open watches.", labels=_WITHOUT_DRY_RUN
        )
        for part, level in self._watches.items():
            long_running.add_metric(part, level.value)
        yield long_running
        watch_bytes = core.CounterMetricFamily(
            "apiserver_watch_bytes", "Bytes sent to watches.", labels=("group", "version", "resource")
        )
        for part, total in self._watch_bytes.items():
            watch_bytes.add_metric(part, total)
        yield watch_bytes

    def _add(self, labels: Labels) -> _Kind:
        sizes = self._sizes.setdefault(_without_dry_run(labels), Histogram(_SIZES))
        made = self._kinds[labels] = _Kind(sizes)
        return made


class _Families(collecting.Collector):
    """Metrics that were collected before."""

    def __init__(self, families: Sequence[core.Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[core.Metric]:
        return self._families


def write(families: Sequence[core.Metric]) -> bytes:
    """Return metrics in Prometheus' text format. With thousands of labels that takes a second: call it in a thread."""
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return exposition.generate_latest(registry)


_WITHOUT_DRY_RUN: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")


def _without_dry_run(labels: Labels) -> tuple[str, ...]:
    rest = (labels.resource, labels.subresource, labels.scope, COMPONENT)
    return (labels.verb, labels.group, labels.version, *rest)
