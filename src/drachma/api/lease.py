"""Lease: a node's heartbeat, or leadership. A partial view."""

from drachma.api import meta
from drachma.api.struct import Int32, Struct


class LeaseSpec(Struct, frozen=True, kw_only=True):
    """Holder, times and duration of the lease."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: meta.MicroTime | None = None
    renew_time: meta.MicroTime | None = None
    lease_transitions: Int32 | None = None


class Lease(meta.Object, frozen=True, kw_only=True):
    """``coordination.k8s.io`` Lease, namespaced; a partial view."""

    spec: LeaseSpec = LeaseSpec()
