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

The names in a stored object are read from its document, unless a stencil has made the object: then they are among the
values that the stencil was filled with (:mod:`drachma.server.pipeline.fills`), and nothing is decoded.

Steps that depend on names in another way, such as policies, say so (``Step.reads_names``); while one of them applies,
there are no stencils. A stencil holds for one version of the namespace.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.server import status
from drachma.server.pipeline import fills
from drachma.server.pipeline import intent as intents
from drachma.server.surface.consultation import Consultation, PendingError
from drachma.store import record

MOST: Final = 64
"""Circumstances (kind, operation, user, namespace, order of times) that stencils are kept for."""

MOST_SHAPES: Final = 8
"""Stencils for the same circumstances."""

LARGEST: Final = 16 * 1024
"""Bytes of the request and of the stored object; larger ones are decided one by one."""

_FIRST_MISSES: Final = 2
_MISSES: Final = 6
"""Intents without a stencil before the first stencil is made, and before each further one."""

_PATIENCE: Final = 64
"""Consecutive intents of a kind without a stencil before a pause, in which no stencil is looked for."""

_PAUSE: Final = 512
"""Intents in a pause."""

_ATTEMPTS: Final = 16
"""Consecutive intents without a stencil after a pause, before the next one."""

_JSON_STRING: Final = re.compile(rb'(?<=")[^"\\]+(?=\\?"(?!:))')
"""Texts of strings that are not keys, also of strings that are quoted in keys of managedFields."""

_RESOURCE_VERSION: Final = b'"resourceVersion":"%b"'


class _Values(msgspec.Struct, frozen=True):
    """Values of an intent: those of the stored object, those of the request, and ``times``, which are the last."""

    all: Sequence[bytes]
    times: Sequence[bytes]
    subdomains: tuple[list[int], list[int]]
    """Positions of names that are no labels, among the names of the stored object and of the request."""


class Stencil:
    """The decision about objects of one shape, with gaps for their names."""

    __slots__ = ("_annotations", "_body", "_output", "_places", "_stored", "_subdomains")

    def __init__(self, specimen: "_Specimen", output: fills.Output, annotations: dict[str, str]) -> None:
        placeholders = specimen.placeholders
        self._places: Final = specimen.places
        self._subdomains: Final = specimen.subdomains
        self._body: Final = fills.Template(specimen.body, placeholders)
        self._stored: Final = None if specimen.stored is None else fills.Template(specimen.stored.data, placeholders)
        self._output: Final = output
        self._annotations: Final = annotations

    def stamp(self, intent: intents.Intent, imprint: intents.Imprint, values: _Values) -> intents.Stamped | None:
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
        self.fills: Final = fills.Fills()

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

    def open(self) -> "Stamping":
        """Return the stencils for intents that are decided on one state."""
        return Stamping(self)

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

    __slots__ = ("_shapes", "_stencils")

    def __init__(self, stencils: Stencils) -> None:
        self._stencils: Final = stencils
        self._shapes: Final[dict[tuple[object, ...], _Shapes | None]] = {}

    def decide(self, intent: intents.Intent, get: intents.Get) -> intents.Decision:
        """Return the decision of an intent: from a stencil if there is one for its shape. ``get`` reads the state.

        Raises:
            status.StatusError: the intent is refused.
        """
        trial = self._stencils.trial(intent)
        if not trial.is_due():
            return intent.decide(get)
        imprint = intent.imprint(get)
        decision = imprint and self._stamp(intent, imprint, get)
        trial.record(is_hit=decision is not None)
        return decision or intent.decide(get)

    def _stamp(self, intent: intents.Intent, imprint: intents.Imprint, get: intents.Get) -> intents.Stamped | None:
        write, marks, existing = intent.write, imprint.marks, imprint.stored
        known = self._stencils.fills
        stored = fills.NO_MARKS if existing is None else known.read_marks(existing, write.served.fast_path)
        if stored is None:
            return None
        times = [*stored.times, *[each.encode() for each in marks.times], meta.time_bytes(write.now)]
        # The values of all objects of a stencil have the same places.
        circumstances: tuple[object, ...] = (
            *imprint.circumstances,
            *stored.sizes,
            len(marks.names),
            len(marks.texts),
            len(marks.versions),
        )
        if len(times) > 1:
            ranks = sorted(set(times))
            circumstances = (*circumstances, *map(ranks.index, times))
        if circumstances in self._shapes:
            shapes = self._shapes[circumstances]
        else:
            shapes = self._shapes[circumstances] = self._find_shapes(intent, imprint, circumstances, get=get)
        requested = None if shapes is None else fills.read_values(marks)
        if shapes is None or requested is None:
            return None
        subdomains = stored.subdomains, fills.find_subdomains(requested[: len(marks.names)])
        values = _Values([*stored.values, *requested, *times], times, subdomains)
        for position, stencil in enumerate(shapes.stencils):
            decision = stencil.stamp(intent, imprint, values)
            if decision is not None:
                if position:
                    shapes.stencils.insert(0, shapes.stencils.pop(position))
                return decision
        if not shapes.is_stencil_due():
            return None
        shapes.made += 1
        sizes = stored.sizes, (len(marks.names), len(marks.texts), len(marks.versions))
        specimen = _make_specimen(imprint, values, sizes)
        new_stencil = None if specimen is None else _make_stencil(intent, imprint, specimen, get=get, known=known)
        if new_stencil is None:
            return None
        shapes.stencils.insert(0, new_stencil)
        del shapes.stencils[MOST_SHAPES:]
        return new_stencil.stamp(intent, imprint, values)

    def _find_shapes(
        self, intent: intents.Intent, imprint: intents.Imprint, circumstances: tuple[object, ...], *, get: intents.Get
    ) -> _Shapes | None:
        """Return the stencils for an intent, or None if names matter to it."""
        write, phases, operation = intent.write, imprint.phases, imprint.operation
        if phases.reads_names(operation, write):
            return None
        namespace = get(record.Key("namespaces", "", write.namespace))
        version = None if namespace is None else namespace.revision
        facts = write.served.fast_path.read_facts(write)
        return self._stencils.find((*circumstances, version, facts, *phases.read_versions(operation, write)))


class _Specimen:
    """Request and stored object with placeholders instead of names.

    ``places`` are the positions of distinct values, and ``ends`` the ends of the placeholders of all values but times.
    """

    def __init__(
        self, imprint: intents.Imprint, values: _Values, *, places: Sequence[int], ends: Sequence[bytes]
    ) -> None:
        names, times = values.all, values.times
        ranks = sorted(set(times))
        first_time = len(names) - len(times)
        versions = {names[place] for place, end in enumerate(ends) if end == fills.VERSION_END}
        self.places: Final = places
        self.subdomains: Final = values.subdomains
        self.placeholders: Final = tuple(
            meta.time_bytes(fills.TIMES[ranks.index(names[place])])
            if place >= first_time
            else fills.NUMBERS[number] + ends[place]
            for number, place in enumerate(places)
        )
        self.now: Final = fills.TIMES[ranks.index(times[-1])]
        placeholders = {names[place]: self.placeholders[number] for number, place in enumerate(places)}
        replaced_versions = [(version, placeholders.pop(version)) for version in versions]
        # Prefixes of generated names end with a dash.
        placeholders.update([(name + b"-", placeholder + b"-") for name, placeholder in placeholders.items()])

        def replace_names(text: bytes) -> bytes:
            for version, placeholder in replaced_versions:
                text = text.replace(_RESOURCE_VERSION % version, _RESOURCE_VERSION % placeholder)
            return _JSON_STRING.sub(lambda match: placeholders.get(match[0], match[0]), text)

        self.body: Final = replace_names(imprint.body)
        self.key: Final = imprint.key._replace(name=placeholders[imprint.key.name.encode()].decode())
        self.stored: record.Record | None = None
        if imprint.stored is not None:
            stored = imprint.stored
            data = replace_names(stored.data)
            uid = placeholders[stored.uid.encode()].decode()
            revision = int(dict(replaced_versions)[b"%d" % stored.revision])
            self.stored = record.Record(self.key, uid, stored.create_revision, revision, data)


def _make_specimen(
    imprint: intents.Imprint, values: _Values, sizes: Sequence[tuple[int, int, int]]
) -> _Specimen | None:
    """Return the specimen of an imprint, or None if there is too much in it, or a text that looks like a version.

    ``sizes`` are the numbers of names, texts and versions in the stored object and in the request.
    """
    names = values.all
    places = [position for position, name in enumerate(names) if name not in names[:position]]
    size = max(len(imprint.body), 0 if imprint.stored is None else len(imprint.stored.data))
    if len(places) > fills.MOST_NAMES or len(values.times) > fills.MOST_TIMES or size > LARGEST:
        return None
    ends: list[bytes] = []
    for (name_count, text_count, version_count), subdomains in zip(sizes, values.subdomains, strict=True):
        ends += [fills.SUBDOMAIN_END if place in subdomains else fills.LABEL_END for place in range(name_count)]
        ends += [fills.TEXT_END] * text_count + [fills.VERSION_END] * version_count
    texts = {names[place] for place, end in enumerate(ends) if end == fills.TEXT_END}
    if any(end == fills.VERSION_END and names[place] in texts for place, end in enumerate(ends)):
        return None
    return _Specimen(imprint, values, places=places, ends=ends)


def _make_stencil(
    intent: intents.Intent, imprint: intents.Imprint, specimen: _Specimen, *, get: intents.Get, known: fills.Fills
) -> Stencil | None:
    """Return the stencil for objects like that of an intent, or None if there is none."""
    consultation = Consultation()
    consultation.draw("uid", fills.UID.decode)
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
    try:
        output = fills.Output(
            intents.make_draft(decision.document)(int(fills.REVISION)),
            (*specimen.placeholders, fills.UID, fills.REVISION),
            fast_path=write.served.fast_path,
            known=known,
        )
        return Stencil(specimen, output, dict(write.annotations))
    except KeyError:
        # A rule has shortened or combined names.
        return None
