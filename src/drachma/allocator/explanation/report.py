"""Reports: the whole of an explanation as data, from the outcome down to single devices.

Made by :mod:`drachma.allocator.explanation.explainer`, rendered by :mod:`drachma.allocator.explanation.text`.
Everything is in a fixed order: claims, requests and constraints as written, causes by how near their devices came,
devices in the order in which a search tries them.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from drachma.allocator.explanation import cause


class Outcome(enum.StrEnum):
    """Result of an allocation."""

    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    GAVE_UP = "GaveUp"
    ERROR = "Error"


class Verdict(enum.StrEnum):
    """Result of a trial. An error or a used-up budget leaves it unknown."""

    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    UNKNOWN = "Unknown"


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class Obstacle(_Data, frozen=True, kw_only=True):
    """Devices that one cause keeps away. ``devices`` are full names (``driver/pool/device``), the first of them only
    where there are very many."""

    cause: cause.Cause
    count: int
    devices: tuple[str, ...]


class AlternativeReport(_Data, frozen=True, kw_only=True):
    """A request, or one of its subrequests: what became of all devices."""

    name: str
    """``request`` or ``request/subrequest``."""
    class_name: str
    wanted: int
    everything: bool = False
    """True if it requests all matching devices; ``wanted`` is their number."""
    admin_access: bool = False
    considered: int
    usable: tuple[str, ...]
    """Devices that nothing keeps away: they are there to be had, or would be, if the combination worked."""
    obstacles: tuple[Obstacle, ...]
    alone: Verdict
    """Verdict on this request alone, without the others."""


class RequestReport(_Data, frozen=True, kw_only=True):
    """A request with its alternatives; a request that is no choice has one, which has its name."""

    name: str
    alternatives: tuple[AlternativeReport, ...]
    is_choice: bool = False


class Supply(_Data, frozen=True, kw_only=True):
    """Number of usable devices that a request has, and that it needs."""

    request: str
    have: int
    want: int


class ValueReport(_Data, frozen=True, kw_only=True):
    """The usable devices that have one value of an attribute."""

    value: cause.Value
    supplies: tuple[Supply, ...]
    enough: bool
    """True if this value can meet the constraint, or, for values that must differ, if a device has it."""


class ConstraintReport(_Data, frozen=True, kw_only=True):
    """A constraint: which values there are, and whether they are enough."""

    number: int
    kind: str
    """``matchAttribute`` or ``distinctAttribute``."""
    attribute: str
    requests: tuple[str, ...]
    """Requests that it covers; empty for all requests."""
    wanted: int
    """Least number of devices that it covers."""
    values: tuple[ValueReport, ...]
    more_values: int = 0
    """Number of values that are not listed."""
    satisfiable: bool


class ClaimReport(_Data, frozen=True, kw_only=True):
    """A claim with its requests and constraints."""

    name: str
    """``namespace/name``."""
    requests: tuple[RequestReport, ...]
    constraints: tuple[ConstraintReport, ...] = ()


class ConflictPart(_Data, frozen=True, kw_only=True):
    """One member of a conflict: a request, a selector of a request, or a constraint."""

    kind: str
    """``request``, ``selector`` or ``constraint``."""
    claim: str
    request: str = ""
    number: int | None = None
    text: str = ""
    """The selector's expression, the constraint's attribute, or what the request wants."""


class Contention(_Data, frozen=True, kw_only=True):
    """Something that the requests of a conflict want more of, taken together, than there is."""

    kind: str
    """``devices``, ``counter`` or ``capacity``."""
    name: str = ""
    needed: str
    available: str


class Conflict(_Data, frozen=True, kw_only=True):
    """Parts of the claims that cannot be had at once. It is minimal if without any one of them the rest fits."""

    parts: tuple[ConflictPart, ...]
    is_minimal: bool
    contentions: tuple[Contention, ...] = ()


class ChangeKind(enum.StrEnum):
    """Kind of a change. Of two changes of the same size, the kind listed first is preferred."""

    TOLERATE = "tolerate"
    LOWER_CAPACITY = "lowerCapacity"
    LOWER_COUNT = "lowerCount"
    DROP_SELECTOR = "dropSelector"
    DROP_CONSTRAINT = "dropConstraint"
    FREE_CLAIM = "freeClaim"
    DROP_REQUEST = "dropRequest"
    DROP_CLASS_SELECTOR = "dropClassSelector"


class Change(_Data, frozen=True, kw_only=True):
    """One change after which everything fits."""

    kind: ChangeKind
    size: int
    """Devices less, devices freed, or 1 for what is not counted in devices."""
    subject: str
    """The claim (``namespace/name``) or the class to be changed."""
    request: str = ""
    number: int | None = None
    before: str = ""
    after: str = ""


class Explanation(_Data, frozen=True, kw_only=True):
    """Why claims fit or do not fit on a node."""

    node: str
    outcome: Outcome
    message: str = ""
    """The error, or why the search gave up."""
    claims: tuple[ClaimReport, ...] = ()
    conflict: Conflict | None = None
    changes: tuple[Change, ...] = ()
    """Single changes that would make it fit, the smallest first."""
    is_complete: bool = True
    """True if the budget sufficed to look for the conflict and for all changes."""


def to_document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as plain dicts, lists and scalars."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(explanation))
    return document
