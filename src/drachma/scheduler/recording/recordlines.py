"""Lines of a recording: one JSON object a line, with its type in ``line``.

After a :class:`Beginning` come lines for everything that the scheduler knew at that moment, and then, before each
:class:`Decision`, lines for everything that has changed since the last one. A file may have several beginnings: the
state before a beginning no longer counts.

The format has a version. Fields may be added without a new version, and readers ignore unknown fields.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.accounting import ledger
from drachma.api import hooks, meta, resourceclaim
from drachma.scheduler.settings import Settings

VERSION: Final = 1

MOST_BYTES: Final = 64 * 2**20
"""Limit for one line."""


NOBODY: Final = msgspec.Raw()
"""Placeholder where there is no pod."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", rename="camel", omit_defaults=True):
    pass


class Beginning(_Line, tag="beginning", frozen=True, kw_only=True):
    """Start of a new state."""

    version: int
    settings: Settings
    missed: int = 0
    """Number of decisions before it that were not recorded, because writing was too slow."""


class Object(_Line, tag="object", frozen=True, kw_only=True):
    """Object of the API that is new or changed."""

    object: msgspec.Raw


class Gone(_Line, tag="gone", frozen=True, kw_only=True):
    """Object of the API that is deleted."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class Assumed(_Line, tag="assumed", frozen=True, kw_only=True):
    """Pod that counts on a node without being bound yet; without a pod, the assumption ended."""

    uid: str
    pod: msgspec.Raw = NOBODY
    node: str = ""
    demand: ledger.Demand | None = None


class InFlight(_Line, tag="inFlight", frozen=True, kw_only=True):
    """Allocation that was decided and not written yet; without an allocation, it is no longer in flight."""

    uid: str
    """Uid of the claim."""
    owner: meta.ObjectMeta | None = None
    """Metadata of the claim."""
    allocation: resourceclaim.AllocationResult | None = None


class Promised(_Line, tag="promised", frozen=True, kw_only=True):
    """Volume that is promised to a claim, by the claim's uid; without a claim, the promise ended."""

    volume: str
    claim: str = ""


class Nominated(_Line, tag="nominated", frozen=True, kw_only=True):
    """Node that is nominated for a waiting pod; without a pod, the nomination ended."""

    uid: str
    pod: msgspec.Raw = NOBODY
    node: str = ""


class ClaimAllocation(msgspec.Struct, frozen=True, rename="camel"):
    """Allocation of a claim."""

    claim: str
    result: resourceclaim.AllocationResult


class Decision(_Line, tag="decision", frozen=True, kw_only=True):
    """Decision about a pod: a node, reasons why none is feasible, or an error."""

    number: int
    time: datetime
    pod: msgspec.Raw
    node: str = ""
    allocations: tuple[ClaimAllocation, ...] = ()
    """Allocations made for the pod; none for claims that were allocated before."""
    feasible: int = 0
    """Number of feasible nodes."""
    reasons: str = ""
    error: str = ""


class Member(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Pod of a gang with its node, by uid."""

    uid: str
    node: str
    allocations: tuple[ClaimAllocation, ...] = ()


class Together(_Line, tag="together", frozen=True, kw_only=True):
    """Decision about a gang: nodes for enough members, or reasons why none gets one."""

    number: int
    time: datetime
    needed: int
    """Number of members that must get a node."""
    pods: tuple[msgspec.Raw, ...]
    """All members that were tried, in their order."""
    members: tuple[Member, ...] = ()
    reasons: str = ""
    error: str = ""


Line = Beginning | Object | Gone | Assumed | InFlight | Promised | Nominated | Decision | Together

_encoder = msgspec.json.Encoder(enc_hook=hooks.encode)


@functools.cache
def _decoder() -> msgspec.json.Decoder[Line]:
    return msgspec.json.Decoder(Line, dec_hook=hooks.decode)


class _Mark(msgspec.Struct, frozen=True):
    line: str
    version: int = 0


def encode(line: Line) -> bytes:
    """Return a line with its end."""
    return _encoder.encode(line) + b"\n"


class Torn(msgspec.Struct, frozen=True):
    """Incomplete last line: the writer was stopped in the middle of it."""

    place: int


def decode(source: Any) -> Iterator[Line | Torn]:
    """Yield the lines of a file that is open for reading bytes.

    Raises:
        errors.DecodeError: a line is malformed, too long, of an unknown version, or comes before the first beginning.
            The message says which line.
    """
    has_begun = False
    number = 0
    while text := source.readline(MOST_BYTES + 1):
        number += 1
        if len(text) > MOST_BYTES:
            raise errors.DecodeError(f"line {number}: has more than {MOST_BYTES} bytes")
        if not text.endswith(b"\n"):
            yield Torn(number)
            return
        try:
            line = _line(text)
        except msgspec.DecodeError as error:
            raise errors.DecodeError(f"line {number}: {error}") from None
        except errors.DecodeError as error:
            raise errors.DecodeError(f"line {number}: {error}") from None
        has_begun = has_begun or isinstance(line, Beginning)
        if not has_begun:
            raise errors.DecodeError(f"line {number}: a recording starts with a beginning")
        yield line


def _line(text: bytes) -> Line:
    mark = msgspec.json.decode(text, type=_Mark)
    if mark.line == "beginning" and mark.version != VERSION:
        raise errors.DecodeError(f"the recording has version {mark.version}: only version {VERSION} can be read")
    return _decoder().decode(text)
