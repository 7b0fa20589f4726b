"""Metrics of the requests that a component sends to its API server, by upstream's names."""

from __future__ import annotations

import urllib.parse
from typing import Final

import prometheus_client

from drachma.runtime import measures

_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class ClientMetrics:
    """Numbers and durations of requests to one server."""

    def __init__(self, server: str, *, registry: prometheus_client.CollectorRegistry) -> None:
        self._host: Final = urllib.parse.urlsplit(server).netloc
        self._requests: Final = measures.Counters(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
            registry=registry,
        )
        self._durations: Final = measures.Histograms(
            "rest_client_request_duration_seconds",
            "Request latency in seconds until the answer begins. Broken down by verb, and host.",
            ("host", "verb"),
            bounds=_BOUNDS,
            registry=registry,
        )

    def observe(self, method: str, code: str, seconds: float) -> None:
        """Count one request; its code is ``<error>`` if there was no answer."""
        self._requests.of(code, self._host, method).inc()
        self._durations.of(self._host, method).observe(seconds)
