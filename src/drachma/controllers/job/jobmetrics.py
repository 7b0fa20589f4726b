"""Metrics about jobs, under upstream's names."""

from typing import Final

import prometheus_client


class JobMetrics:
    """How many looks there were at jobs, and how many jobs and pods have come to their end."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._syncs: Final = prometheus_client.Counter(
            "job_controller_job_syncs_total", "Looks at jobs.", ("completion_mode", "result"), registry=registry
        )
        self._ends: Final = prometheus_client.Counter(
            "job_controller_jobs_finished_total",
            "Jobs that have come to their end.",
            ("completion_mode", "result", "reason"),
            registry=registry,
        )
        self._pods: Final = prometheus_client.Counter(
            "job_controller_job_pods_finished_total",
            "Pods of jobs that have ended and were counted.",
            ("completion_mode", "result"),
            registry=registry,
        )

    def count_sync(self, mode: str, *, result: str) -> None:
        self._syncs.labels(mode, result).inc()

    def count_end(self, mode: str, *, result: str, reason: str) -> None:
        self._ends.labels(mode, result, reason).inc()

    def count_pods(self, mode: str, *, succeeded: int, failed: int) -> None:
        # An indexed job that is made smaller has fewer successes than before, and counters do not go back.
        self._pods.labels(mode, "succeeded").inc(max(succeeded, 0))
        self._pods.labels(mode, "failed").inc(max(failed, 0))
