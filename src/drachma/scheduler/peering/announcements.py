"""Announcements: the pods that each scheduler holds, with their nodes and the resources that they take.

Every scheduler writes its announcements into its own lease (:mod:`drachma.scheduler.peering.peerlease`), many in one
write, and reads those of all peers. The list of leases has one order of writes, which is the same for all schedulers.
Of two announcements that cannot both be carried out, the one with the higher version gives way.

An announcement stands until the pod is bound and its claims are seen with their devices, until the pod is gone, or
until its scheduler takes it back. An announcement that merely disappears was carried out: it counts until this
scheduler sees the result. Pods and claims are watched separately, so either may be seen first.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from drachma.accounting import ledger
from drachma.api import hooks, meta, resourceclaim
from drachma.claims import identity, wellknown
from drachma.scheduler.snapshot import assignment

_log = logging.getLogger(__name__)

LINGER_SECONDS: Final = 10.0
"""Time limit after which an announcement that disappeared no longer counts."""

NOTHING: Final = ledger.Demand((), 0, 0, ())
"""Demand of a pod that goes to no node."""

Result = resourceclaim.DeviceRequestAllocationResult
IndexT = TypeVar("IndexT")


class Announcement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pod that a scheduler holds. Without a node, the pod is only kept from being scheduled."""

    namespace: str
    name: str
    number: int = 0
    """Number that distinguishes it from announcements with the same content."""
    node: str = ""
    demand: ledger.Demand = NOTHING
    devices: Mapping[str, tuple[Result, ...]] = {}
    """Allocation results of its claims, by :func:`claim_key`."""

    def exclusive(self) -> Iterator[tuple[str, identity.DeviceID]]:
        """Yield the devices that no other claim can share, each with its claim."""
        for claim, results in self.devices.items():
            for result in results:
                if result.share_id is None:
                    yield claim, identity.device_of(result)


def claim_key(claim: resourceclaim.ResourceClaim) -> str:
    """Return the uid of a claim, or of its pod for an unwritten claim for extended resources."""
    if claim.metadata.annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) == "true":
        for owner in claim.metadata.owner_references:
            if owner.controller:
                return owner.uid
    return claim.metadata.uid


Texts = Mapping[str, bytes]
"""Announcements as JSON by the uid of their pod; ``null`` for those that were taken back."""

TAKEN_BACK: Final = b"null"

_encoder = msgspec.json.Encoder(enc_hook=hooks.encode)
_texts_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_decoder = msgspec.json.Decoder(Announcement | None, dec_hook=hooks.decode)


def encode(announcement: Announcement) -> bytes:
    """Return an announcement as JSON."""
    return _encoder.encode(announcement)


def join(texts: Texts) -> str:
    """Return all announcements of a scheduler as one text."""
    return _encoder.encode({uid: msgspec.Raw(text) for uid, text in texts.items()}).decode()


def split(text: str) -> dict[str, bytes]:
    """Return the announcements of such a text. An unreadable text is logged, and has none."""
    try:
        return {uid: bytes(raw) for uid, raw in _texts_decoder.decode(text).items()} if text else {}
    except msgspec.DecodeError as error:
        _log.error("announcements of another scheduler cannot be read: %s", error)
        return {}


class Record:
    """Announcement with its scheduler and the version of the lease that brought it; 0 if the version is unknown."""

    __slots__ = ("content", "ended", "is_bound", "peer", "uid", "version")

    def __init__(self, peer: str, uid: str, content: Announcement, version: int) -> None:
        self.peer = peer
        self.uid = uid
        self.content = content
        self.version = version
        self.ended: float | None = None
        """Time at which the announcement disappeared."""
        self.is_bound = False
        """True if the pod was seen bound."""


class Announced:
    """All standing announcements of all schedulers."""

    def __init__(self) -> None:
        self._texts: Final[dict[str, Texts]] = {}
        self._by_pod: Final[dict[str, dict[str, Record]]] = {}
        self._by_node: Final[dict[str, dict[tuple[str, str], Record]]] = {}
        self._by_device: Final[dict[identity.DeviceID, dict[tuple[str, str], Record]]] = {}
        self._by_claim: Final[dict[str, dict[tuple[str, str], Record]]] = {}

    def pod_records(self, uid: str) -> Iterable[Record]:
        """Return all announcements of a pod."""
        return tuple(self._by_pod.get(uid, {}).values())

    def peer_record(self, peer: str, uid: str) -> Record | None:
        """Return the announcement of a pod by one scheduler, or None."""
        return self._by_pod.get(uid, {}).get(peer)

    def node_records(self, node: str) -> Iterable[Record]:
        """Return all announcements of pods for a node."""
        return tuple(self._by_node.get(node, {}).values())

    def device_records(self, device: identity.DeviceID) -> Iterable[Record]:
        """Return all announcements that take a whole device."""
        return tuple(self._by_device.get(device, {}).values())

    def read(self, peer: str, texts: Texts, *, version: int, now: float) -> tuple[list[Record], list[Record]]:
        """Read the current announcements of a scheduler. Return the new records, and those that no longer stand."""
        before = self._texts.get(peer, {})
        self._texts[peer] = texts
        added, removed = [], []
        for uid, text in texts.items():
            if before.get(uid) == text:
                continue
            removed += self._remove(peer, uid)
            content = _decoder.decode(text)
            if content is not None:
                record = Record(peer, uid, content, version)
                self._add(record)
                added.append(record)
        for uid in before.keys() - texts.keys():
            self._end(peer, uid, now=now)
        return added, removed

    def end_all(self, peer: str, *, now: float) -> None:
        """Note that a scheduler ended in good order: its announcements were carried out, or will not be."""
        for uid in self._texts.pop(peer, {}):
            self._end(peer, uid, now=now)

    def drop_all(self, peer: str) -> list[Record]:
        """Drop the announcements of a dead scheduler, and return them."""
        self._texts.pop(peer, None)
        uids = [uid for uid, records in self._by_pod.items() if peer in records]
        return [record for uid in uids for record in self._remove(peer, uid)]

    def bound(self, uid: str, *, allocated: Container[str]) -> list[Record]:
        """Note that a pod is bound, with the claims seen with devices. Return the records that no longer stand."""
        records = self.pod_records(uid)
        for record in records:
            record.is_bound = True
        return self._settle(records, allocated)

    def allocate(self, claim: str, *, allocated: Container[str]) -> list[Record]:
        """Note that a claim is seen with devices, like ``allocated``. Return the records that no longer stand."""
        return self._settle(tuple(self._by_claim.get(claim, {}).values()), allocated)

    def gone(self, uid: str) -> list[Record]:
        """Note that a pod is gone. Return the records that no longer stand."""
        return [removed for record in self.pod_records(uid) for removed in self._remove(record.peer, uid)]

    def _settle(self, records: Iterable[Record], allocated: Container[str]) -> list[Record]:
        return [
            settled
            for record in records
            if record.is_bound and all(claim in allocated for claim in record.content.devices)
            for settled in self._remove(record.peer, record.uid)
        ]

    def expire(self, *, now: float) -> list[Record]:
        """Return the records that disappeared long ago and no longer stand, although their result was never seen."""
        late = [
            record
            for records in self._by_pod.values()
            for record in records.values()
            if record.ended is not None and record.ended + LINGER_SECONDS <= now
        ]
        return [removed for record in late for removed in self._remove(record.peer, record.uid)]

    def _end(self, peer: str, uid: str, *, now: float) -> None:
        record = self.peer_record(peer, uid)
        if record is not None:
            record.ended = now

    def _add(self, record: Record) -> None:
        key = (record.peer, record.uid)
        self._by_pod.setdefault(record.uid, {})[record.peer] = record
        if record.content.node:
            self._by_node.setdefault(record.content.node, {})[key] = record
        for _, device in record.content.exclusive():
            self._by_device.setdefault(device, {})[key] = record
        for claim in record.content.devices:
            self._by_claim.setdefault(claim, {})[key] = record

    def _remove(self, peer: str, uid: str) -> list[Record]:
        record = self._by_pod.get(uid, {}).pop(peer, None)
        if record is None:
            return []
        key = (peer, uid)
        if not self._by_pod[uid]:
            del self._by_pod[uid]
        _drop(self._by_node, record.content.node, key)
        for _, device in record.content.exclusive():
            _drop(self._by_device, device, key)
        for claim in record.content.devices:
            _drop(self._by_claim, claim, key)
        return [record]


def _drop(index: dict[IndexT, dict[tuple[str, str], Record]], value: IndexT, key: tuple[str, str]) -> None:
    if value in index:
        index[value].pop(key, None)
        if not index[value]:
            del index[value]


# Announced allocations


_STAND_IN: Final = "announced by "


def stand_in(record: Record) -> assignment.Allocation:
    """Return the allocations of an announced pod as one stand-in claim, which exists only in this scheduler."""
    name = f"{_STAND_IN}{record.peer} for {record.uid}"
    results = tuple(
        msgspec.structs.replace(each, share_id=f"{each.share_id}, announced") if each.share_id is not None else each
        for results in record.content.devices.values()
        for each in results
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=results))
    status = resourceclaim.ResourceClaimStatus(allocation=allocation)
    claim = resourceclaim.ResourceClaim(metadata=meta.ObjectMeta(name=name, uid=name), status=status)
    return assignment.Allocation(claim, allocation)


def is_claim(owner: str) -> bool:
    """Return True if an owner of a device is a claim, and not a stand-in."""
    return not owner.startswith(_STAND_IN)
