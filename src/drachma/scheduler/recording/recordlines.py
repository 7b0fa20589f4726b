"""The lines of a recording: one JSON object a line, which says what it is in ``line``.

After a :class:`Beginning` come lines for all that the scheduler knew at that moment, and then, before each
:class:`Decision`, lines for what has become different since the one before. There may be several beginnings in a file:
what was known before one of them no longer counts.

The form has a version. Fields may be added without another one; readers pass over those that they do not know.
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
"""Of one line that is read."""


NOBODY: Final = msgspec.Raw()
"""In place of a pod where there is none."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", rename="camel", omit_defaults=True):
    pass


class Beginning(_Line, tag="beginning", frozen=True, kw_only=True):
    """Everything begins anew."""

    version: int
    settings: Settings
    missed: int = 0
    """How many decisions before it were not recorded, because writing was too slow."""


class Object(_Line, tag="object", frozen=True, kw_only=True):
    """An object of the API is there, or is different."""

    object: msgspec.Raw


class Gone(_Line, tag="gone", frozen=True, kw_only=True):
    """An object of the API is no longer there."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class Assumed(_Line, tag="assumed", frozen=True, kw_only=True):
    """A pod counts on a node that it is not bound to yet; without a pod, no longer."""

    uid: str
    pod: msgspec.Raw = NOBODY
    node: str = ""
    demand: ledger.Demand | None = None


class InFlight(_Line, tag="inFlight", frozen=True, kw_only=True):
    """An allocation was decided and is not written yet; without an allocation, it is no longer on its way."""

    uid: str
    """Of the claim."""
    owner: meta.ObjectMeta | None = None
    """What the claim is called."""
    allocation: resourceclaim.AllocationResult | None = None


class Promised(_Line, tag="promised", frozen=True, kw_only=True):
    """A volume is kept for a claim, by its uid; without one, for nobody."""

    volume: str
    claim: str = ""


class Nominated(_Line, tag="nominated", frozen=True, kw_only=True):
    """A node is kept for a pod that waits; without a pod, no longer."""

    uid: str
    pod: msgspec.Raw = NOBODY
    node: str = ""


class ClaimAllocation(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim gets."""

    claim: str
    result: resourceclaim.AllocationResult


class Decision(_Line, tag="decision", frozen=True, kw_only=True):
    """What became of a pod: it has a node, or there are reasons why not, or something went wrong."""

    number: int
    time: datetime
    pod: msgspec.Raw
    node: str = ""
    allocations: tuple[ClaimAllocation, ...] = ()
    """What is allocated for it; nothing for claims that had their devices already."""
    feasible: int = 0
    """How many nodes would have done."""
    reasons: str = ""
    error: str = ""


class Member(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod of a gang that has a node, by its uid."""

    uid: str
    node: str
    allocations: tuple[ClaimAllocation, ...] = ()


class Together(_Line, tag="together", frozen=True, kw_only=True):
    """What became of a gang: members have nodes, as many as it takes, or there are reasons why none has."""

    number: int
    time: datetime
    needed: int
    """How many have to have a node."""
    pods: tuple[msgspec.Raw, ...]
    """All members that were looked at, in their order."""
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
    """A line, with its end."""
    return _encoder.encode(line) + b"\n"


class Torn(msgspec.Struct, frozen=True):
    """The last line has no end: whoever wrote it was stopped in the middle."""

    place: int


def decode(source: Any) -> Iterator[Line | Torn]:
    """The lines of a file that is open for reading bytes, one by one.

    Raises:
        errors.DecodeError: a line is not well-formed, too long, of a version that is not known, or comes before the
            first beginning; the message says which line.
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
