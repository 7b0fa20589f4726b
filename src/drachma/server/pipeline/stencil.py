"""Stencils: a decision that is made once for objects that differ only in names, and filled in for each of them.

Components write hundreds of objects of one shape: the claims of a template, the allocations of equal claims, the
bindings of equal pods and the events about them. Between the request and the store, the server copies the names and
uids in such objects and checks their form, but nothing else depends on them. So the decision about one object is the
decision about the next one with other names in it.

An intent that can be repeated has an :class:`intent.Imprint`: the text of the request, the stored object, and the names
in both. A stencil is made by deciding a specimen: the same request with a placeholder instead of each name. Wherever a
placeholder appears in the specimen's decision, a name is copied. The decision about another object is filled in if its
request and its stored object are exactly those of the stencil with its own names, and if these have the form that all
rules about names accept. In every other case the intent decides by itself.

A client may repeat a name in a field with other rules, such as a quantity. So a placeholder is the worst name there
is: as long as a name of its form can be, with a digit in front, letters and dashes. A rule that accepts it accepts all
names of this form, and a specimen that is refused makes no stencil.

Times are copied as well, but managers are sorted by them, so a stencil holds for objects with times in the same order.

Steps that depend on names in another way, such as policies, say so (``Step.reads_names``); while one of them applies,
there are no stencils. A stencil holds for one version of the namespace.
"""

import datetime as dt
import re
import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.server import status
from drachma.server.pipeline import intent as intents
from drachma.server.surface.consultation import Consultation, PendingError
from drachma.store import record

MOST: Final = 64
"""Circumstances (kind, operation, user, namespace, order of times) that stencils are kept for."""

MOST_SHAPES: Final = 8
"""Stencils for the same circumstances."""

LARGEST: Final = 16 * 1024
"""Bytes of the request and of the stored object; larger ones are decided one by one."""

_MOST_NAMES: Final = 40
_MOST_TIMES: Final = 12
_FIRST_MISSES: Final = 2
_MISSES: Final = 6
"""Intents without a stencil before the first stencil is made, and before each further one."""

_PATIENCE: Final = 64
"""Consecutive intents of a kind without a stencil before a pause, in which no stencil is looked for."""

_PAUSE: Final = 512
"""Intents in a pause."""

_ATTEMPTS: Final = 16
"""Consecutive intents without a stencil after a pause, before the next one."""

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


_LABEL_END: Final = b"--" + b"x" * (_LABEL_LENGTH - 2 - len(_make_number(0)))
_SUBDOMAIN_END: Final = b".".join([_LABEL_END, *[b"1--" + b"x" * (_LABEL_LENGTH - 3)] * 2, b"1--" + b"x" * 58])
_TEXT_END: Final = b" ~!" + b"x" * (_TEXT_LENGTH - 3 - len(_make_number(0)))
"""Ends of placeholders for names that are labels, for other names, and for texts."""


def _make_time(rank: int) -> dt.datetime:
    """Return a time that occurs nowhere else; times are in the order of their ranks."""
    days, seconds = divmod(_SALT, 24 * 3600)
    moment = dt.datetime(1600 + rank, 1 + days // 28 % 12, 1 + days % 28, tzinfo=dt.UTC)
    return moment + dt.timedelta(seconds=seconds)


_NUMBERS: Final = tuple(map(_make_number, range(_MOST_NAMES + 2)))
_TIMES: Final = tuple(map(_make_time, range(_MOST_TIMES)))
_ANY_PLACEHOLDER: Final = re.compile(
    rb"(1777%09d\d{6}(?:%b|%b|%b)?|16\d\d-%b)"
    % (
        _SALT,
        re.escape(_TEXT_END),
        re.escape(_SUBDOMAIN_END),
        re.escape(_LABEL_END),
        meta.time_text(_TIMES[0]).encode().partition(b"-")[2],
    )
)
_JSON_STRING: Final = re.compile(rb'(?<=")[^"\\]+(?=\\?"(?!:))')
"""Texts of strings that are not keys, also of strings that are quoted in keys of managedFields."""

_RESOURCE_VERSION: Final = b'"resourceVersion":"%b"'

_NO_PLACES: Final[frozenset[int]] = frozenset()
_UID: Final = _NUMBERS[-2]
_REVISION: Final = _NUMBERS[-1]


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


class Stencil:
    """The decision about objects of one shape, with gaps for their names."""

    __slots__ = ("_annotations", "_body", "_output", "_places", "_stored", "_subdomains")

    def __init__(
        self, specimen: "_Specimen", places: Sequence[int], output: bytes, annotations: dict[str, str]
    ) -> None:
        """``places`` are the positions of distinct values in an imprint."""
        placeholders = specimen.placeholders
        self._places: Final = places
        self._subdomains: Final = specimen.subdomains
        self._body: Final = Template(specimen.body, placeholders)
        self._stored: Final = None if specimen.stored is None else Template(specimen.stored.data, placeholders)
        self._output: Final = Template(output, (*placeholders, _UID, _REVISION))
        self._annotations: Final = annotations

    def stamp(self, intent: intents.Intent, imprint: intents.Imprint, values: "_Values") -> intents.Stamped | None:
        """Return the decision of an intent with these values, or None if its object has another shape."""
        places, names = self._places, values.all
        if values.subdomains != self._subdomains or len(set(names)) != len(places):
            return None
        gaps = [names[place] for place in places]
        if self._body.fill(gaps) != imprint.body:
            return None
        existing = imprint.stored
        if self._stored is not None and (existing is None or self._stored.fill(gaps) != existing.data):
            return None
        if self._annotations:
            intent.write.annotations.update(self._annotations)
        uid = imprint.uid if existing is None else existing.uid
        gaps.append(uid.encode())
        return intents.Stamped(imprint.key, uid, existing, self._output, gaps)


class _Shapes:
    """Stencils for the same circumstances, the latest first."""

    __slots__ = ("made", "misses", "stencils")

    def __init__(self) -> None:
        self.stencils: Final[list[Stencil]] = []
        self.misses = 0
        self.made = 0

    def is_stencil_due(self) -> bool:
        """Count an intent without a stencil; return True if a stencil for it may pay off."""
        self.misses += 1
        return self.misses >= _FIRST_MISSES + _MISSES * self.made


class Trial:
    """Experience with intents of a kind: looking for stencils costs more than it saves if no two objects are alike."""

    __slots__ = ("_misses", "_skips")

    def __init__(self) -> None:
        self._misses = 0
        self._skips = 0

    def is_due(self) -> bool:
        """Return True if a stencil should be looked for. Counts an intent that is decided without."""
        if self._misses < _PATIENCE:
            return True
        self._skips += 1
        if self._skips >= _PAUSE:
            self._skips, self._misses = 0, _PATIENCE - _ATTEMPTS
        return False

    def record(self, *, is_hit: bool) -> None:
        """Count the result of looking for a stencil."""
        self._misses = 0 if is_hit else self._misses + 1


class Stencils:
    """Stencils of an application, those of the latest circumstances."""

    def __init__(self) -> None:
        self._shapes: Final[dict[tuple[object, ...], _Shapes]] = {}
        self._trials: Final[dict[tuple[object, ...], Trial]] = {}

    def trial(self, intent: intents.Intent) -> Trial:
        """Return the experience with intents like this one. There is one for each kind and operation."""
        write = intent.write
        key = intent.__class__, write.resource.key, write.subresource
        trial = self._trials.get(key)
        if trial is None:
            trial = self._trials[key] = Trial()
            if len(self._trials) > MOST:
                del self._trials[next(iter(self._trials))]
        return trial

    def open(self, get: intents.Get) -> "Stamping":
        """Return the stencils for intents that are decided on one state."""
        return Stamping(self, get)

    def find(self, circumstances: tuple[object, ...]) -> _Shapes:
        """Return the stencils for some circumstances; there may be none yet."""
        shapes = self._shapes.get(circumstances)
        if shapes is None:
            shapes = self._shapes[circumstances] = _Shapes()
            if len(self._shapes) > MOST:
                del self._shapes[next(iter(self._shapes))]
        return shapes


class Stamping:
    """Stencils that apply to one state of the cluster."""

    __slots__ = ("_get", "_shapes", "_stencils")

    def __init__(self, stencils: Stencils, get: intents.Get) -> None:
        self._stencils: Final = stencils
        self._get: Final = get
        self._shapes: Final[dict[tuple[object, ...], _Shapes | None]] = {}

    def decide(self, intent: intents.Intent) -> intents.Decision:
        """Return the decision of an intent: from a stencil if there is one for its shape.

        Raises:
            status.StatusError: the intent is refused.
        """
        trial = self._stencils.trial(intent)
        if not trial.is_due():
            return intent.decide(self._get)
        imprint = intent.imprint(self._get)
        decision = imprint and self._stamp(intent, imprint)
        trial.record(is_hit=decision is not None)
        return decision or intent.decide(self._get)

    def _stamp(self, intent: intents.Intent, imprint: intents.Imprint) -> intents.Stamped | None:
        times = imprint.times
        # The values of all imprints of a stencil have the same places.
        sizes = len(imprint.names), len(imprint.texts), len(imprint.versions)
        if len(times) > 1:
            ranks = sorted(set(times))
            circumstances = (*imprint.circumstances, *sizes, *map(ranks.index, times))
        else:
            circumstances = (*imprint.circumstances, *sizes)
        if circumstances in self._shapes:
            shapes = self._shapes[circumstances]
        else:
            shapes = self._shapes[circumstances] = self._find_shapes(intent, imprint, circumstances)
        values = None if shapes is None else _read_values(imprint)
        if shapes is None or values is None:
            return None
        for position, stencil in enumerate(shapes.stencils):
            decision = stencil.stamp(intent, imprint, values)
            if decision is not None:
                if position:
                    shapes.stencils.insert(0, shapes.stencils.pop(position))
                return decision
        if not shapes.is_stencil_due():
            return None
        shapes.made += 1
        new_stencil = _make_stencil(intent, imprint, values, get=self._get)
        if new_stencil is None:
            return None
        shapes.stencils.insert(0, new_stencil)
        del shapes.stencils[MOST_SHAPES:]
        return new_stencil.stamp(intent, imprint, values)

    def _find_shapes(
        self, intent: intents.Intent, imprint: intents.Imprint, circumstances: tuple[object, ...]
    ) -> _Shapes | None:
        """Return the stencils for an intent, or None if names matter to it."""
        if imprint.reads_names(intent.write):
            return None
        write = intent.write
        namespace = self._get(record.Key("namespaces", "", write.namespace))
        version = None if namespace is None else namespace.revision
        facts = write.served.fast_path.read_facts(write)
        return self._stencils.find((*circumstances, version, facts, *imprint.read_versions(write)))


class _Specimen:
    """Request and stored object with placeholders instead of names."""

    def __init__(self, imprint: intents.Imprint, values: "_Values", places: Sequence[int]) -> None:
        names = values.all
        times = sorted(set(imprint.times))
        first_time = len(names) - len(imprint.times)
        first_version = first_time - len(imprint.versions)
        self.subdomains: Final = values.subdomains

        def make_placeholder(number: int, place: int) -> bytes:
            if place >= first_time:
                return meta.time_text(_TIMES[times.index(names[place].decode())]).encode()
            if place >= first_version:
                return _NUMBERS[number]
            if place >= len(imprint.names):
                return _NUMBERS[number] + _TEXT_END
            return _NUMBERS[number] + (_SUBDOMAIN_END if place in self.subdomains else _LABEL_END)

        self.placeholders: Final = tuple(make_placeholder(number, place) for number, place in enumerate(places))
        self.now: Final = _TIMES[times.index(imprint.times[-1])]
        placeholders = {names[place]: self.placeholders[number] for number, place in enumerate(places)}
        versions = [(version, placeholders.pop(version)) for version in set(names[first_version:first_time])]
        # Prefixes of generated names end with a dash.
        placeholders.update([(name + b"-", placeholder + b"-") for name, placeholder in placeholders.items()])

        def replace_names(text: bytes) -> bytes:
            for version, placeholder in versions:
                text = text.replace(_RESOURCE_VERSION % version, _RESOURCE_VERSION % placeholder)
            return _JSON_STRING.sub(lambda match: placeholders.get(match[0], match[0]), text)

        self.body: Final = replace_names(imprint.body)
        self.key: Final = imprint.key._replace(name=placeholders[imprint.key.name.encode()].decode())
        self.stored: record.Record | None = None
        if imprint.stored is not None:
            stored = imprint.stored
            data = replace_names(stored.data)
            uid = placeholders[stored.uid.encode()].decode()
            revision = int(dict(versions)[b"%d" % stored.revision])
            self.stored = record.Record(self.key, uid, stored.create_revision, revision, data)


class _Values(NamedTuple):
    """Values of an imprint: names, texts, versions and times."""

    all: Sequence[bytes]
    subdomains: frozenset[int]
    """Places of names that are no labels, so that fewer rules accept them."""


def _read_values(imprint: intents.Imprint) -> _Values | None:
    """Return the values of an imprint, or None if a rule may refuse the form of one."""
    names = "\n".join(imprint.names).encode()
    if _NAMES.fullmatch(names) is None:
        return None
    values = names.split(b"\n")
    subdomains = _NO_PLACES
    if b"." in names or (len(names) > _LABEL_LENGTH and max(map(len, values)) > _LABEL_LENGTH):
        subdomains = frozenset(
            [place for place, name in enumerate(values) if b"." in name or len(name) > _LABEL_LENGTH]
        )
    if imprint.texts:
        texts = "\n".join(imprint.texts).encode()
        if _TEXTS.fullmatch(texts) is None:
            return None
        values += texts.split(b"\n")
    if imprint.versions:
        versions = "\n".join(imprint.versions).encode()
        if _VERSIONS.fullmatch(versions) is None:
            return None
        values += versions.split(b"\n")
    values += "\n".join(imprint.times).encode().split(b"\n")
    return _Values(values, subdomains)


def _make_stencil(
    intent: intents.Intent, imprint: intents.Imprint, values: _Values, *, get: intents.Get
) -> Stencil | None:
    """Return the stencil for objects like that of an intent, or None if there is none."""
    names = values.all
    if not set(imprint.versions).isdisjoint(imprint.texts):
        return None
    places = [position for position, name in enumerate(names) if name not in names[:position]]
    size = max(len(imprint.body), 0 if imprint.stored is None else len(imprint.stored.data))
    if len(places) > _MOST_NAMES or len(imprint.times) > _MOST_TIMES or size > LARGEST:
        return None
    specimen = _Specimen(imprint, values, places)
    consultation = Consultation()
    consultation.draw("uid", _UID.decode)
    consultation.draw("name", lambda: specimen.key.name)
    write = intent.write
    if write.name:
        write = msgspec.structs.replace(write, name=specimen.key.name)
    write = msgspec.structs.replace(write, now=specimen.now, warnings=[], annotations={}, consultation=consultation)
    try:
        decision = imprint.make_specimen(write, specimen.body, specimen.stored).decide(
            lambda key: specimen.stored if key == specimen.key else get(key)
        )
    except (status.StatusError, PendingError, errors.DrachmaError):
        return None
    if not isinstance(decision, intents.Make | intents.Replace) or decision.charges or decision.companions:
        return None
    if write.warnings:
        return None
    output = intents.make_draft(decision.document)(int(_REVISION)).data
    try:
        return Stencil(specimen, places, output, dict(write.annotations))
    except KeyError:
        # A rule has shortened or combined names.
        return None
