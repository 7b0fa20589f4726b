"""Counts of claims by state, and the age of those that wait for devices."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

from drachma.api.resourceclaim import ResourceClaim
from drachma.exporter import series
from drachma.exporter.series import Metric

PENDING: Final = "pending"
ALLOCATED: Final = "allocated"
RESERVED: Final = "reserved"
DELETING: Final = "deleting"
STATES: Final = (PENDING, ALLOCATED, RESERVED, DELETING)


def metrics(claims: Sequence[ResourceClaim], *, now: dt.datetime, limit: int) -> list[Metric]:
    """Return the metrics of claims; at most so many namespaces have their own series."""
    namespaces = series.most_frequent((each.metadata.namespace for each in claims), limit)
    counts = series.tally((series.bounded(each.metadata.namespace, namespaces), state_of(each)) for each in claims)
    pending_claims = [each for each in claims if state_of(each) == PENDING]
    return [
        Metric(
            name="drachma_resource_claims",
            help="Claims by state: pending, allocated without a consumer, reserved for a consumer, deleting.",
            labels=("namespace", "state"),
            samples=counts,
        ),
        Metric(
            name="drachma_oldest_pending_claim_age_seconds",
            help="Age of the oldest claim without devices; 0 if there is none.",
            samples={(): series.oldest_age(pending_claims, now=now)},
        ),
    ]


def state_of(claim: ResourceClaim) -> str:
    """Return the state of a claim."""
    if claim.metadata.deletion_timestamp is not None:
        return DELETING
    if claim.status.allocation is None:
        return PENDING
    return RESERVED if claim.status.reserved_for else ALLOCATED
