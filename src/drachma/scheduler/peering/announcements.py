"""Announcements: the pods that each scheduler has in hand, where they go, and what they take there.

Every scheduler writes its announcements into its own lease (:mod:`drachma.scheduler.peering.peerlease`), many in one
write, and reads those of all others. One list of leases has one order of writes, which is the same for everybody: of
two announcements that cannot both be carried out, the one with the higher version has to give way.

An announcement stands until the pod is bound and its claims are seen with their devices, until the pod is gone, or its
scheduler takes it back. One that merely disappears was carried out: it counts until this scheduler sees that, too.
Pods and claims are watched apart, so either may be seen first.
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
"""How long an announcement that disappeared counts at most."""

NOTHING: Final = ledger.Demand((), 0, 0, ())
"""What a pod takes that goes nowhere."""

Result = resourceclaim.DeviceRequestAllocationResult
IndexT = TypeVar("IndexT")


class Announcement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that a scheduler has in hand; without a node it is only kept from going anywhere."""

    namespace: str
    name: str
    number: int = 0
    """Tells it from others of the same content."""
    node: str = ""
    demand: ledger.Demand = NOTHING
    devices: Mapping[str, tuple[Result, ...]] = {}
    """What its claims, by :func:`claim_key`, get."""

    def exclusive(self) -> Iterator[tuple[str, identity.DeviceID]]:
        """The devices that nobody else can have, each with its claim."""
        for claim, results in self.devices.items():
            for result in results:
                if result.share_id is None:
                    yield claim, identity.device_of(result)


def claim_key(claim: resourceclaim.ResourceClaim) -> str:
    """The uid of a claim; for that of extended resources, which has none before it is written, the uid of its pod."""
    if claim.metadata.annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) == "true":
        for owner in claim.metadata.owner_references:
            if owner.controller:
                return owner.uid
    return claim.metadata.uid


Texts = Mapping[str, bytes]
"""Announcements by the uid of their pod, as JSON; ``null`` for what was taken back."""

TAKEN_BACK: Final = b"null"

_encoder = msgspec.json.Encoder(enc_hook=hooks.encode)
_texts_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_decoder = msgspec.json.Decoder(Announcement | None, dec_hook=hooks.decode)


def encode(announcement: Announcement) -> bytes:
    """One announcement as JSON."""
    return _encoder.encode(announcement)


def join(texts: Texts) -> str:
    """All announcements of a scheduler as one text."""
    return _encoder.encode({uid: msgspec.Raw(text) for uid, text in texts.items()}).decode()


def split(text: str) -> dict[str, bytes]:
    """The announcements of such a text; none where it is unreadable, which is logged."""
    try:
        return {uid: bytes(raw) for uid, raw in _texts_decoder.decode(text).items()} if text else {}
    except msgspec.DecodeError as error:
        _log.error("announcements of another scheduler cannot be read: %s", error)
        return {}


class Record:
    """An announcement, who made it, and the version of the lease that brought it: 0 where that is not known."""

    __slots__ = ("content", "ended", "is_bound", "peer", "uid", "version")

    def __init__(self, peer: str, uid: str, content: Announcement, version: int) -> None:
        self.peer = peer
        self.uid = uid
        self.content = content
        self.version = version
        self.ended: float | None = None
        """When it disappeared."""
        self.is_bound = False
        """Whether its pod is seen bound."""


class Announced:
    """All announcements that stand, of all schedulers."""

    def __init__(self) -> None:
        self._texts: Final[dict[str, Texts]] = {}
        self._by_pod: Final[dict[str, dict[str, Record]]] = {}
        self._by_node: Final[dict[str, dict[tuple[str, str], Record]]] = {}
        self._by_device: Final[dict[identity.DeviceID, dict[tuple[str, str], Record]]] = {}
        self._by_claim: Final[dict[str, dict[tuple[str, str], Record]]] = {}

    def of_pod(self, uid: str) -> Iterable[Record]:
        """All announcements of a pod."""
        return tuple(self._by_pod.get(uid, {}).values())

    def by(self, peer: str, uid: str) -> Record | None:
        """The announcement of a pod that a scheduler made."""
        return self._by_pod.get(uid, {}).get(peer)

    def on_node(self, node: str) -> Iterable[Record]:
        """All announcements of pods that go to a node."""
        return tuple(self._by_node.get(node, {}).values())

    def with_device(self, device: identity.DeviceID) -> Iterable[Record]:
        """All announcements that take the whole of a device."""
        return tuple(self._by_device.get(device, {}).values())

    def read(self, peer: str, texts: Texts, *, version: int, now: float) -> tuple[list[Record], list[Record]]:
        """Take in what a scheduler announces now; returns what is new and what no longer stands."""
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
        """A scheduler ended in good order: what it announced was carried out, or will not be."""
        for uid in self._texts.pop(peer, {}):
            self._end(peer, uid, now=now)

    def drop_all(self, peer: str) -> list[Record]:
        """A scheduler is dead; returns what no longer stands."""
        self._texts.pop(peer, None)
        uids = [uid for uid, records in self._by_pod.items() if peer in records]
        return [record for uid in uids for record in self._remove(peer, uid)]

    def bound(self, uid: str, *, allocated: Container[str]) -> list[Record]:
        """A pod is bound, and ``allocated`` are the claims seen with their devices; returns what no longer stands."""
        records = self.of_pod(uid)
        for record in records:
            record.is_bound = True
        return self._settle(records, allocated)

    def allocate(self, claim: str, *, allocated: Container[str]) -> list[Record]:
        """A claim is seen with its devices, as are those in ``allocated``; returns what no longer stands."""
        return self._settle(tuple(self._by_claim.get(claim, {}).values()), allocated)

    def gone(self, uid: str) -> list[Record]:
        """A pod is gone; returns what no longer stands."""
        return [gone for record in self.of_pod(uid) for gone in self._remove(record.peer, uid)]

    def _settle(self, records: Iterable[Record], allocated: Container[str]) -> list[Record]:
        return [
            settled
            for record in records
            if record.is_bound and all(claim in allocated for claim in record.content.devices)
            for settled in self._remove(record.peer, record.uid)
        ]

    def expire(self, *, now: float) -> list[Record]:
        """Returns what disappeared long ago and stands no longer, although it was never seen carried out."""
        late = [
            record
            for records in self._by_pod.values()
            for record in records.values()
            if record.ended is not None and record.ended + LINGER_SECONDS <= now
        ]
        return [gone for record in late for gone in self._remove(record.peer, record.uid)]

    def _end(self, peer: str, uid: str, *, now: float) -> None:
        record = self.by(peer, uid)
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


# What others are about to write


_STAND_IN: Final = "announced by "


def stand_in(record: Record) -> assignment.Allocation:
    """What an announced pod gets, as a claim that is nowhere but in the mind of a scheduler."""
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
    """Whether an owner of a device is a claim, and not the stand-in of one."""
    return not owner.startswith(_STAND_IN)
