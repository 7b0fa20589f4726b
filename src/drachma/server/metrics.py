"""Request metrics under upstream's names, so that dashboards and alerts for kube-apiserver work unchanged."""

from typing import Final, NamedTuple

import prometheus_client
from prometheus_client import exposition

from drachma.server import routes, watching
from drachma.store import protocol

COMPONENT: Final = "apiserver"

_DURATIONS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_SIZES: Final = (1000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0, 100_000_000.0, 1_000_000_000.0)
_READS: Final = frozenset({"GET", "HEAD"})


class Labels(NamedTuple):
    """What tells one kind of request from another."""

    verb: str
    dry_run: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


def labels_of(route: routes.Route | None, method: str, *, is_watch: bool, is_dry_run: bool) -> Labels:
    """The labels of a request; requests beside the resources only have their method."""
    if route is None:
        return Labels(method, "", "", "", "", "", "")
    verb = {"create": "POST", "update": "PUT", "patch": "PATCH", "get": "GET", "list": "LIST"}.get(
        route.verb, route.verb.upper()
    )
    return Labels(
        "WATCH" if is_watch else verb,
        "All" if is_dry_run else "",
        route.resource.group,
        route.version,
        route.resource.plural,
        route.subresource.name if route.subresource is not None else "",
        route.scope,
    )


class Metrics:
    """The counters and histograms of one server."""

    def __init__(self) -> None:
        self.registry: Final = prometheus_client.CollectorRegistry()
        """What ``/metrics`` shows; components in the server's process put theirs in it."""
        names = Labels._fields
        self._requests = prometheus_client.Counter(
            "apiserver_request_total",
            "Requests by verb, dry run, group, version, resource, scope, component and response code.",
            (*names, "component", "code"),
            registry=self.registry,
        )
        self._durations = prometheus_client.Histogram(
            "apiserver_request_duration_seconds",
            "Response latency by verb, dry run, group, version, resource, subresource, scope and component.",
            (*names, "component"),
            buckets=_DURATIONS,
            registry=self.registry,
        )
        self._sizes = prometheus_client.Histogram(
            "apiserver_response_sizes",
            "Response size in bytes by group, version, verb, resource, subresource, scope and component.",
            ("group", "version", "verb", "resource", "subresource", "scope", "component"),
            buckets=_SIZES,
            registry=self.registry,
        )
        self._in_flight = prometheus_client.Gauge(
            "apiserver_current_inflight_requests",
            "Requests being served, by kind.",
            ("request_kind",),
            registry=self.registry,
        )
        self._long_running = prometheus_client.Gauge(
            "apiserver_longrunning_requests",
            "Open watches.",
            ("verb", "group", "version", "resource", "subresource", "scope", "component"),
            registry=self.registry,
        )
        self._watch_bytes = prometheus_client.Counter(
            "apiserver_watch_bytes",
            "Bytes sent to watches.",
            ("group", "version", "resource"),
            registry=self.registry,
        )
        self._reading = self._in_flight.labels("readOnly")
        self._mutating = self._in_flight.labels("mutating")
        # Looking up a child by its labels costs more than counting, so children are kept.
        self._children: dict[tuple[Labels, int], prometheus_client.Counter] = {}
        self._timers: dict[Labels, tuple[prometheus_client.Histogram, prometheus_client.Histogram]] = {}

    def observe_store(self, store: protocol.Store, streams: watching.Streams) -> None:
        """Adds what is known about the store: its revision, and the number of watches."""
        revision = prometheus_client.Gauge(
            "apiserver_storage_revision", "The newest revision of the store.", registry=self.registry
        )
        revision.set_function(lambda: store.revision)
        watches = prometheus_client.Gauge(
            "apiserver_registered_watchers", "Watches that are open.", registry=self.registry
        )
        watches.set_function(lambda: len(streams))

    def in_flight(self, method: str) -> prometheus_client.Gauge:
        """The gauge that a request of this method counts in while it is served."""
        return self._reading if method in _READS else self._mutating

    def answered(self, labels: Labels, *, code: int, seconds: float, size: int) -> None:
        """A request other than a watch has been answered."""
        self._count(labels, code)
        timers = self._timers.get(labels)
        if timers is None:
            duration = self._durations.labels(*labels, COMPONENT)
            rest = (labels.resource, labels.subresource, labels.scope, COMPONENT)
            timers = duration, self._sizes.labels(labels.group, labels.version, labels.verb, *rest)
            self._timers[labels] = timers
        timers[0].observe(seconds)
        timers[1].observe(size)

    def watch_started(self, labels: Labels) -> None:
        self._long_running.labels(*_of_watch(labels)).inc()

    def watch_finished(self, labels: Labels, *, code: int, size: int) -> None:
        self._long_running.labels(*_of_watch(labels)).dec()
        self._count(labels, code)
        self._watch_bytes.labels(labels.group, labels.version, labels.resource).inc(size)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return exposition.generate_latest(self.registry)

    def _count(self, labels: Labels, code: int) -> None:
        child = self._children.get((labels, code))
        if child is None:
            child = self._requests.labels(*labels, COMPONENT, str(code))
            self._children[labels, code] = child
        child.inc()


def _of_watch(labels: Labels) -> tuple[str, ...]:
    rest = (labels.resource, labels.subresource, labels.scope, COMPONENT)
    return (labels.verb, labels.group, labels.version, *rest)
