"""Metrics of claims, under the names that Kubernetes released and under those of the KEPs.

Claims are counted at each scrape, from the cache of the informer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import prometheus_client
from prometheus_client import core, registry

from drachma.api import resourceclaim
from drachma.claims import ownership, preference, wellknown
from drachma.runtime import Informer

_CREATE_LABELS: Final = ("status", "admin_access", "owner_api_group", "owner_api_kind")
_CLAIM_LABELS: Final = ("allocated", "admin_access", "source")


class _Attempt(NamedTuple):
    status: str
    admin_access: str
    owner_api_group: str
    owner_api_kind: str


class ClaimMetrics(registry.Collector):
    """Number of claims, and of created and refused ones."""

    def __init__(
        self,
        informer: Informer[resourceclaim.ResourceClaim],
        *,
        registry: prometheus_client.CollectorRegistry,
    ) -> None:
        self._informer: Final = informer
        self._attempts: Final[Counter[_Attempt]] = Counter()
        self._withheld = 0
        registry.register(self)

    def count_create(self, claim: resourceclaim.ResourceClaim, *, succeeded: bool) -> None:
        """Count a claim that was created, or refused."""
        owner = ownership.controller_of(claim)
        group, slash, _ = owner.api_version.partition("/") if owner is not None else ("", "", "")
        attempt = _Attempt(
            "success" if succeeded else "failure",
            _admin_access(claim),
            group if slash else "",
            owner.kind if owner is not None else "",
        )
        self._attempts[attempt] += 1

    def count_withheld(self) -> None:
        """Count a claim that was not sent to the server, because it needs a feature that is off.

        Only the metrics of the KEPs count it: Kubernetes counts requests.
        """
        self._withheld += 1

    def describe(self) -> Iterable[core.Metric]:
        """Describe nothing: names are checked when metrics are collected."""
        return ()

    def collect(self) -> Iterator[core.Metric]:
        yield from self._collect_creates()
        yield from self._collect_claims()

    def _collect_creates(self) -> Iterator[core.Metric]:
        creates = core.CounterMetricFamily(
            "dynamic_resource_allocation_resourceclaim_creates",
            "Attempts to create claims, by outcome, admin access, and group and kind of the owner.",
            labels=_CREATE_LABELS,
        )
        for attempt, count in self._attempts.items():
            creates.add_metric(attempt, count)
        yield creates
        attempts = sum(self._attempts.values()) + self._withheld
        refused = sum(count for attempt, count in self._attempts.items() if attempt.status == "failure")
        failures = refused + self._withheld
        text = "Attempts to create claims for pods."
        yield core.CounterMetricFamily("resourceclaim_controller_creates", text, value=attempts)
        yield core.CounterMetricFamily("resourceclaim_controller_create", text, value=attempts)
        text = "Attempts to create claims for pods that failed."
        yield core.CounterMetricFamily("resourceclaim_controller_create_failures", text, value=failures)

    def _collect_claims(self) -> Iterator[core.Metric]:
        counts = Counter(map(_labels, self._informer.cache))
        claims = core.GaugeMetricFamily(
            "dynamic_resource_allocation_resource_claims",
            "Claims by whether they are allocated, admin access, and what they were made from.",
            labels=_CLAIM_LABELS,
        )
        for labels, count in counts.items():
            claims.add_metric(labels, count)
        yield claims
        yield from self._collect_lists()

    def _collect_lists(self) -> Iterator[core.Metric]:
        """Collect the metrics of KEP-4816, which tell claims with a list of alternatives from others."""
        claims = tuple(self._informer.cache)
        for name, text, selected in (
            ("resourceclaim_controller_resource_claims", "Claims", claims),
            (
                "resourceclaim_controller_allocated_resource_claims",
                "Claims that are allocated",
                tuple(each for each in claims if each.status.allocation is not None),
            ),
        ):
            family = core.GaugeMetricFamily(
                name, f"{text}, by whether a request has a list of alternatives.", labels=("prioritized_list",)
            )
            counts = Counter(map(_has_list, selected))
            for has_list in (False, True):
                family.add_metric((str(has_list).lower(),), counts[has_list])
            yield family
        ranks = core.GaugeMetricFamily(
            "drachma_prioritized_list_allocations",
            "Allocated requests with a list of alternatives, by the rank of the alternative, which begins with 1.",
            labels=("rank",),
        )
        for rank, count in sorted(Counter(rank for each in claims for rank in preference.ranks(each).values()).items()):
            ranks.add_metric((str(rank + 1),), count)
        yield ranks


def _labels(claim: resourceclaim.ResourceClaim) -> tuple[str, str, str]:
    annotations = claim.metadata.annotations
    source = ""
    if annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) == "true":
        source = "extended_resource"
    elif annotations.get(wellknown.POD_CLAIM_ANNOTATION):
        source = "resource_claim_template"
    return "true" if claim.status.allocation is not None else "false", _admin_access(claim), source


def _admin_access(claim: resourceclaim.ResourceClaim) -> str:
    requests = claim.spec.devices.requests
    return "true" if any(each.exactly is not None and each.exactly.admin_access for each in requests) else "false"


def _has_list(claim: resourceclaim.ResourceClaim) -> bool:
    return any(each.first_available for each in claim.spec.devices.requests)
