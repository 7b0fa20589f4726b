"""Texts with gaps for names, and the values that stored objects were filled with.

:mod:`drachma.server.pipeline.stencil` makes objects by filling the text of a decision with names, uids, versions and
times. The next change of such an object starts from these values: its marks are some of them, so the object need not be
decoded to find its names. Values are kept for a bounded number of bytes; the marks of other objects are read from their
documents.
"""

import datetime as dt
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.server.surface.strategy import FastPath, Marks
from drachma.store import record

MOST_NAMES: Final = 40
MOST_TIMES: Final = 12
"""Distinct values in one text."""

_SALT: Final = secrets.randbelow(10**9)
"""Part of all placeholders, so that no client can send one."""

_NAME: Final = (
    rb"(?=[^\n]*[-0-9]|[a-z](?:\n|\Z))(?!\d[\d.]*[a-z]?\d*(?:\n|\Z))(?=.{1,253}(?:\n|\Z))"
    rb"[a-z0-9]+(?:(?:-+|\.)[a-z0-9]+)*"
)
_NAMES: Final = re.compile(rb"%b(?:\n%b)*" % (_NAME, _NAME))
"""Lines that are names in the form of DNS subdomains, or uids.

A name that can also be a word or a quantity may occur elsewhere in the object with another meaning, so it must have a
dash or a digit and not look like a number, or be a single letter.
"""

_LABEL_LENGTH: Final = 63
_TEXT_LENGTH: Final = 512

_VERSIONS: Final = re.compile(rb"\d{1,18}(?:\n\d{1,18})*")

_TEXTS: Final = re.compile(rb"(?:[ !#-\[\]-~]{1,512}(?:\n|\Z))*")
"""Lines of printable ASCII that JSON does not escape."""


def _make_number(position: int) -> bytes:
    """Return a text that is a valid uid and resource version, and occurs nowhere else."""
    return b"1777%09d%06d" % (_SALT, position)


LABEL_END: Final = b"--" + b"x" * (_LABEL_LENGTH - 2 - len(_make_number(0)))
SUBDOMAIN_END: Final = b".".join([LABEL_END, *[b"1--" + b"x" * (_LABEL_LENGTH - 3)] * 2, b"1--" + b"x" * 58])
TEXT_END: Final = b" ~!" + b"x" * (_TEXT_LENGTH - 3 - len(_make_number(0)))
VERSION_END: Final = b""
"""Ends of placeholders for names that are labels, for other names, for texts, and for resource versions."""


def _make_time(rank: int) -> dt.datetime:
    """Return a time that occurs nowhere else; times are in the order of their ranks."""
    days, seconds = divmod(_SALT, 24 * 3600)
    moment = dt.datetime(1600 + rank, 1 + days // 28 % 12, 1 + days % 28, tzinfo=dt.UTC)
    return moment + dt.timedelta(seconds=seconds)


NUMBERS: Final = tuple(map(_make_number, range(MOST_NAMES + 2)))
"""Beginnings of placeholders."""

TIMES: Final = tuple(map(_make_time, range(MOST_TIMES)))
_ANY_PLACEHOLDER: Final = re.compile(
    rb"(1777%09d\d{6}(?:%b|%b|%b)?|16\d\d-%b)"
    % (
        _SALT,
        re.escape(TEXT_END),
        re.escape(SUBDOMAIN_END),
        re.escape(LABEL_END),
        meta.time_bytes(TIMES[0]).partition(b"-")[2],
    )
)

UID: Final = NUMBERS[-2]
REVISION: Final = NUMBERS[-1]


class Template:
    """Text with gaps."""

    __slots__ = ("_gaps", "_pieces")

    def __init__(self, text: bytes, placeholders: Sequence[bytes]) -> None:
        """Raises KeyError for a text with another placeholder, or with a part of one."""
        numbers = {placeholder: number for number, placeholder in enumerate(placeholders)}
        self._pieces: Final = _ANY_PLACEHOLDER.split(text)
        self._gaps: Final = [(position, numbers[self._pieces[position]]) for position in range(1, len(self._pieces), 2)]

    def fill(self, values: Sequence[bytes]) -> bytes:
        """Return the text with a value in each gap; ``values`` are in the order of the placeholders."""
        pieces = self._pieces.copy()
        for position, number in self._gaps:
            pieces[position] = values[number]
        return b"".join(pieces)


class StoredMarks(msgspec.Struct, frozen=True):
    """Marks of a stored object: ``values`` are names, texts and versions, in this order, ``sizes`` their numbers.

    ``times`` are those of the marks and those in the metadata. ``subdomains`` are places of names that are no labels.
    """

    values: list[bytes]
    sizes: tuple[int, int, int]
    times: list[bytes]
    subdomains: list[int]


NO_MARKS: Final = StoredMarks([], (0, 0, 0), [], [])


def _mark_document(document: Mapping[str, Any], fast_path: FastPath) -> StoredMarks | None:
    """Return the marks of a stored document; None if there is no stencil for changes of it."""
    marks = fast_path.mark_stored(document)
    if marks is None:
        return None
    metadata = document["metadata"]
    moments = [entry["time"] for entry in metadata.get("managedFields") or () if "time" in entry]
    times = [each.encode() for each in (*marks.times, metadata["creationTimestamp"], *moments)]
    values = [each.encode() for each in (*marks.names, *marks.texts, *marks.versions)]
    sizes = len(marks.names), len(marks.texts), len(marks.versions)
    return StoredMarks(values, sizes, times, find_subdomains(values[: sizes[0]]))


class Output(Template):
    """Text of the objects that a stencil makes."""

    __slots__ = ("_fast_path", "_known", "_mark_places", "_sizes", "_subdomains", "_time_places")

    def __init__(
        self, body: record.Body, placeholders: Sequence[bytes], *, fast_path: FastPath, known: "Fills"
    ) -> None:
        """``body`` has placeholders in its text and in its document."""
        super().__init__(body.data, placeholders)
        marks = _mark_document(body.value, fast_path)
        if marks is None or not {*marks.values, *marks.times} <= {*placeholders}:
            # The names of such objects are read from their documents.
            marks, self._known = NO_MARKS, None
        else:
            self._known = known
        self._fast_path: Final = fast_path
        self._sizes: Final = marks.sizes
        self._subdomains: Final = marks.subdomains
        """Those of all objects that the stencil makes: a name has the form of its placeholder."""
        self._mark_places: Final = [placeholders.index(value) for value in marks.values]
        self._time_places: Final = [placeholders.index(value) for value in marks.times]

    def record_fill(self, key: record.Key, data: bytes, values: Sequence[bytes]) -> None:
        """Take note that the text of an object in the store was filled with these values."""
        if self._known is not None:
            self._known.add(key, _Fill(data, self, values))

    def read_marks(self, values: Sequence[bytes], fast_path: FastPath) -> StoredMarks | None:
        """Return the marks of an object that was filled with these values; None for another version of its kind."""
        if fast_path is not self._fast_path:
            return None
        return StoredMarks(
            [values[place] for place in self._mark_places],
            self._sizes,
            [values[place] for place in self._time_places],
            self._subdomains,
        )


class _Fill(msgspec.Struct, frozen=True):
    """Text of an object, the stencil that made it, and the values that it was filled with."""

    data: bytes
    output: Output
    values: Sequence[bytes]


FILL_BYTES: Final = 16 * 2**20
"""Bytes of the objects whose values are kept. The values themselves take less than the objects."""


class Fills:
    """Values that stencils were filled with lately, by object, within a bound on memory."""

    def __init__(self) -> None:
        self._fills: Final[dict[record.Key, _Fill]] = {}
        self._bytes = 0

    def add(self, key: record.Key, fill: _Fill) -> None:
        """Keep the values of an object, at the cost of the oldest ones."""
        fills = self._fills
        replaced = fills.pop(key, None)
        fills[key] = fill
        self._bytes += len(fill.data) - (0 if replaced is None else len(replaced.data))
        while self._bytes > FILL_BYTES:
            self._bytes -= len(fills.pop(next(iter(fills))).data)

    def read_marks(self, existing: record.Record, fast_path: FastPath) -> StoredMarks | None:
        """Return the marks of a stored object, or None if a rule may depend on more than the form of its names."""
        fill = self._fills.get(existing.key)
        if fill is not None and fill.data is existing.data:
            marks = fill.output.read_marks(fill.values, fast_path)
            if marks is not None:
                return marks
        marks = _mark_document(existing.value, fast_path)
        return None if marks is None or not _are_plain(marks) else marks


def read_values(marks: Marks) -> list[bytes] | None:
    """Return names, texts and versions in a request, or None if a rule may refuse the form of one."""
    values: list[bytes] = []
    for group, form in ((marks.names, _NAMES), (marks.texts, _TEXTS), (marks.versions, _VERSIONS)):
        if group:
            text = "\n".join(group).encode()
            if form.fullmatch(text) is None:
                return None
            values += text.split(b"\n")
    return values


def find_subdomains(names: Sequence[bytes]) -> list[int]:
    """Return the positions of names that are no labels, so that fewer rules accept them."""
    if b"." not in b"".join(names) and max(map(len, names), default=0) <= _LABEL_LENGTH:
        return []
    return [position for position, name in enumerate(names) if b"." in name or len(name) > _LABEL_LENGTH]


def _are_plain(marks: StoredMarks) -> bool:
    """Return True if no rule refuses the form of the names in a stored object."""
    names, texts, _ = marks.sizes
    groups = marks.values[:names], marks.values[names : names + texts], marks.values[names + texts :]
    forms = _NAMES, _TEXTS, _VERSIONS
    return all(not group or form.fullmatch(b"\n".join(group)) for group, form in zip(groups, forms, strict=True))
